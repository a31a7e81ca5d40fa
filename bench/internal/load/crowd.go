package load

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"strconv"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/holdfast-go/holdfast/bench/internal/contender"
)

// Job is what one process is to do. It travels to other processes as JSON.
type Job struct {
	Library  string        `json:"library"`
	Kind     string        `json:"kind,omitempty"` // what the Java program locks
	Address  string        `json:"address"`
	Lease    time.Duration `json:"lease"`
	Page     string        `json:"page"`
	Process  int64         `json:"process"`  // from 1
	Callers  int           `json:"callers"`  // goroutines, or threads
	First    int           `json:"first"`    // the number of the first of them among those of all processes
	Distinct bool          `json:"distinct"` // each has a name of its own
	Hold     time.Duration `json:"hold"`     // what the work under the lock takes
	Reads    float64       `json:"reads"`    // the share of read locks
	Warm     int           `json:"warm"`     // Java only: pairs that a new virtual machine makes first
	Forever  bool          `json:"forever"`  // Java only: keep what is locked until the end
}

// crowd is the callers of one process. They lock, go through the section, unlock, and
// want the lock again at once: the hardest case for fairness, and one that no real
// work reaches.
type crowd struct {
	job       Job
	contender contender.Contender
	page      *page
	callers   []caller
	waits     Histogram // of those who wrote
	reads     Histogram
	handovers Histogram // from Unlock in one process to the return of Lock in another
	overlaps  atomic.Int64

	begun   time.Time
	before  Footprint
	cpu     time.Duration
	cancel  context.CancelFunc
	running errgroup.Group
}

type caller struct {
	since      atomic.Int64  // when it began to wait, after crowd.begun; 0: it does not
	measured   int64         // grants in the window
	writes     int64         // in all phases
	unfinished time.Duration // a wait that ended after the window
	_          [32]byte      // its neighbour shall not share a cache line
}

// outcome is what a crowd found. Reports of other processes have the same form.
type outcome struct {
	Grants     []int64       `json:"grants"` // in the window, of each caller
	Writes     int64         `json:"writes"` // passes through the section, in all phases
	Waits      counts        `json:"waits"`
	Reads      counts        `json:"reads"`
	Handovers  counts        `json:"handovers"`
	Unfinished time.Duration `json:"unfinished"` // the longest wait that the end cut off
	Overlaps   int64         `json:"overlaps"`
	CPU        time.Duration `json:"cpu"`
	Error      string        `json:"error,omitempty"`
}

// Sample is what a process takes beyond its callers.
type Sample struct {
	Goroutines int   `json:"goroutines"`
	Memory     int64 `json:"memory"` // growth of heap and stacks
}

func openCrowd(j Job, p *page) (*crowd, error) {
	l := contender.Pick(j.Library)[0]
	c := &crowd{job: j, page: p, callers: make([]caller, j.Callers), before: FootprintNow()}
	var err error
	if c.contender, err = l.Open(j.Address, j.Lease); err != nil {
		return nil, fmt.Errorf("%s: %w", l.Name, err)
	}
	// Scripts are known to the server, and connections open, before anything is counted.
	for range 20 {
		if err := contender.Pair(context.Background(), c.contender, "warm:"+strconv.FormatInt(j.Process, 10)); err != nil {
			c.contender.Close()
			return nil, err
		}
	}
	return c, nil
}

// start starts the callers. They end when the page says stopped, or end is called.
func (c *crowd) start() {
	ctx, cancel := context.WithCancel(context.Background())
	c.begun, c.cancel, c.cpu = time.Now(), cancel, CPUTime()
	for i := range c.callers {
		c.running.Go(func() error { return c.work(ctx, i) })
	}
}

func (c *crowd) sample() Sample {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return Sample{
		Goroutines: runtime.NumGoroutine() - c.before.Goroutines - len(c.callers),
		Memory:     int64(m.HeapAlloc+m.StackInuse) - int64(c.before.Heap+c.before.Stack),
	}
}

// end lets those go who still wait: they would take as long as they have waited so far.
// The page must say stopped, to all processes: some libraries give a lock back when the
// context of Lock ends, and the next holder must not enter the section then.
func (c *crowd) end() *outcome {
	now := time.Since(c.begun)
	var cut time.Duration
	for i := range c.callers {
		if since := c.callers[i].since.Load(); since != 0 {
			cut = max(cut, now-time.Duration(since))
		}
	}
	c.cancel()
	fault := c.running.Wait()
	o := &outcome{
		Unfinished: cut,
		Waits:      c.waits.counts(), Reads: c.reads.counts(), Handovers: c.handovers.counts(),
		Overlaps: c.overlaps.Load(),
		CPU:      CPUTime() - c.cpu,
	}
	for i := range c.callers {
		w := &c.callers[i]
		o.Grants = append(o.Grants, w.measured)
		o.Writes += w.writes
		o.Unfinished = max(o.Unfinished, w.unfinished)
	}
	if fault != nil {
		o.Error = fault.Error()
	}
	return o
}

func (c *crowd) close() { c.contender.Close() }

// reader is a Contender with read locks.
type reader interface {
	RLock(ctx context.Context, name string) (unlock func(context.Context) error, err error)
}

func (c *crowd) work(ctx context.Context, i int) error {
	w := &c.callers[i]
	name := "lock"
	if c.job.Distinct {
		name += ":" + strconv.Itoa(c.job.First+i)
	}
	// A library without read locks takes part with what it has.
	rlock := c.contender.Lock
	if r, ok := c.contender.(reader); ok {
		rlock = r.RLock
	}
	last := context.WithoutCancel(ctx) // the end of the run leaves nothing locked
	dice := rand.New(rand.NewPCG(1, uint64(c.job.First+i)))
	for turn := int64(0); c.page.phase() != stopped; turn++ {
		lock, reads, waits := c.contender.Lock, false, &c.waits
		if c.job.Reads > 0 && dice.Float64() < c.job.Reads {
			lock, reads, waits = rlock, true, &c.reads
		}
		begun := time.Since(c.begun)
		w.since.Store(int64(begun))
		unlock, err := lock(ctx, name)
		w.since.Store(0)
		phase := c.page.phase()
		if err != nil {
			if phase == stopped {
				return nil
			}
			return fmt.Errorf("lock: %w", err)
		}
		switch phase {
		case stopped:
			w.unfinished = time.Since(c.begun) - begun
		case measuring:
			waits.Record(time.Since(c.begun) - begun)
			w.measured++
		}
		if phase != stopped {
			c.pass(w, turn, reads, phase)
		}
		if err := unlock(last); err != nil && c.page.phase() != stopped {
			return fmt.Errorf("unlock: %w", err)
		}
		c.page.words[wordProgress].Add(1)
	}
	return nil
}

// pass goes through the section.
func (c *crowd) pass(w *caller, turn int64, reads bool, phase int64) {
	switch {
	case reads:
		most := int64(math.MaxInt64)
		if c.job.Kind == contender.Permit || c.job.Kind == contender.Weighed {
			most = contender.Permits
		}
		if !c.page.read(turn, c.job.Hold, most) {
			c.overlaps.Add(1)
		}
	case c.job.Distinct:
		inside(1, c.job.Hold)
	case c.job.Hold > 0:
		if d, ok := c.page.handover(c.job.Process); ok && phase == measuring {
			c.handovers.Record(d)
		}
		c.page.write(c.job.Hold)
		w.writes++
		c.page.released(c.job.Process)
	default:
		c.page.write(0)
		w.writes++
	}
}
