package demo

import (
	"context"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
)

// Progress is told how far the sale has come: buyers served and phones sold. Calls
// come one at a time, from changing goroutines.
type Progress func(served, sold int)

// crew runs the processes of a sale and adds up what they report.
type crew struct {
	spawn    Spawn
	redisURL string
	progress Progress // may be nil

	mu       sync.Mutex // guards the following
	begun    time.Time  // when the buyers were let loose
	ended    time.Time  // when the latest outcome came
	outcomes []Outcome
	sold     int
	figures  Figures
}

// run starts one process per shift, lets them begin together once all are ready, and
// returns when all have ended. The first one to fail stops the others.
func (c *crew) run(ctx context.Context, shifts []Shift) error {
	g, ctx := errgroup.WithContext(ctx)
	ready := make(chan struct{}, len(shifts))
	processes := make([]*process, 0, len(shifts))
	for _, s := range shifts {
		p, err := startProcess(c.spawn(ctx, c.redisURL, s), s)
		if err != nil {
			g.Go(func() error { return err }) // which stops those before
			return g.Wait()
		}
		processes = append(processes, p)
		g.Go(func() error {
			figures, err := p.follow(func() { ready <- struct{}{} }, c.told)
			c.add(figures)
			return err
		})
	}
	for range processes {
		select {
		case <-ready:
		case <-ctx.Done():
			return g.Wait()
		}
	}
	c.mu.Lock()
	c.begun = time.Now()
	c.mu.Unlock()
	for _, p := range processes {
		p.start()
	}
	return g.Wait()
}

func (c *crew) told(o Outcome) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ended = time.Now()
	c.outcomes = append(c.outcomes, o)
	if o.Phone != 0 {
		c.sold++
	}
	if c.progress != nil {
		c.progress(len(c.outcomes), c.sold)
	}
}

func (c *crew) add(f Figures) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.figures.Commands += f.Commands
	c.figures.HandedOff += f.HandedOff
}

// fill writes into r what the processes have reported. To be called after run.
func (c *crew) fill(r *Result) {
	c.mu.Lock()
	defer c.mu.Unlock()
	r.Outcomes = slices.SortedFunc(slices.Values(c.outcomes), func(a, b Outcome) int { return a.Buyer - b.Buyer })
	r.Figures = c.figures
	r.Took = c.ended.Sub(c.begun)
}
