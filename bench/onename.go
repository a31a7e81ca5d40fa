package bench

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// oneName asks how a lock goes round in a process.
var oneName = scenario{
	name:      "onename",
	question:  "How often, how evenly and at what price does one lock change hands among the goroutines of a process that all want it all the time?",
	rows:      goroutines(2, 16, 128, 1000),
	libraries: pick(ours, "redsync", "redsync-1ms", "redislock", "redislock-1ms", "rueidislock"),
	headline:  unitRate,
	shown:     []string{unitRate, "wait-" + unitP99, "wait-" + unitMax, unitJain, unitStarved, unitCommands},
	measure: func(ctx context.Context, t trial) (metrics, error) {
		c, u, err := t.open(ctx, "onename", lease)
		if err != nil {
			return nil, err
		}
		defer c.Close()
		r := &rush{contender: c, workers: make([]worker, t.n), begun: time.Now()}
		elapsed, err := r.run(ctx, t.window)
		if err != nil {
			return nil, err
		}
		sent, err := u.soFar(ctx)
		if err != nil {
			return nil, err
		}
		shares := make([]int64, t.n)
		var starved, all int64
		longest := r.waits.max()
		for i := range r.workers {
			w := &r.workers[i]
			shares[i] = w.measured
			all += w.all
			if w.measured == 0 {
				starved++
			}
			longest = max(longest, w.unfinished)
		}
		m := metrics{
			unitRate:          float64(r.waits.count()) / elapsed.Seconds(),
			"wait-" + unitP50: microseconds(r.waits.quantile(.5)),
			"wait-" + unitP99: microseconds(r.waits.quantile(.99)),
			"wait-" + unitMax: milliseconds(longest),
			unitJain:          jain(shares),
			unitStarved:       float64(starved),
		}
		sent.perPair(m, all)
		return m, nil
	},
}

const (
	unitJain    = "jain"    // over the goroutines' numbers of grants
	unitStarved = "starved" // goroutines without a grant in the window
)

// rush is many goroutines that want one lock, hold it for no time, and want it again
// at once: the hardest case for fairness, and one that no real work reaches.
type rush struct {
	contender contender
	workers   []worker
	begun     time.Time
	phase     phases
	waits     histogram
	inside    section
}

type worker struct {
	since      atomic.Int64 // when it began to wait, after rush.begun; 0: it does not
	measured   int64        // grants in the window
	all        int64
	unfinished time.Duration // the wait that the end of the window cut off
	_          [32]byte      // its neighbour shall not share a cache line
}

func (r *rush) run(ctx context.Context, window time.Duration) (time.Duration, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var (
		wg    sync.WaitGroup
		once  sync.Once
		fault error
	)
	for i := range r.workers {
		wg.Go(func() {
			if err := r.work(ctx, &r.workers[i]); err != nil {
				once.Do(func() { fault = err })
			}
		})
	}
	elapsed := r.phase.run(window, always, always)
	end := time.Since(r.begun)
	for i := range r.workers {
		if since := r.workers[i].since.Load(); since != 0 {
			r.workers[i].unfinished = end - time.Duration(since)
		}
	}
	cancel() // those who still wait would take as long as they have waited so far
	wg.Wait()
	if fault != nil {
		return 0, fault
	}
	var grants int64
	for i := range r.workers {
		grants += r.workers[i].all
	}
	return elapsed, r.inside.check(grants)
}

func always() bool { return true }

func (r *rush) work(ctx context.Context, w *worker) error {
	for !r.phase.is(stopped) {
		begun := time.Since(r.begun)
		w.since.Store(int64(begun))
		unlock, err := r.contender.Lock(ctx, "onename")
		w.since.Store(0)
		if err != nil {
			if r.phase.is(stopped) {
				return nil
			}
			return fmt.Errorf("lock: %w", err)
		}
		switch r.phase.now.Load() {
		case measuring:
			r.waits.record(time.Since(r.begun) - begun)
			w.measured++
			fallthrough
		case warming:
			r.inside.pass()
			w.all++
		}
		// Some libraries give a lock back when the context of Lock ends, which is no
		// fault of theirs; neither is an error that comes from it.
		if err := unlock(context.WithoutCancel(ctx)); err != nil && !r.phase.is(stopped) {
			return fmt.Errorf("unlock: %w", err)
		}
	}
	return nil
}

// section is what a lock protects: a counter without protection of its own. Where two
// are inside at once, an increment gets lost.
type section struct{ n atomic.Int64 } // atomic for the race detector: a lock in Redis orders nothing that it knows of

// pass goes through the section. Every so often it lets others run inside: on one
// core they would hardly ever get the chance.
func (s *section) pass() {
	n := s.n.Load()
	if n%32 == 0 {
		runtime.Gosched()
	}
	s.n.Store(n + 1)
}

// check reports an error unless n passes were made one after the other.
func (s *section) check(n int64) error {
	if got := s.n.Load(); got != n {
		return fmt.Errorf("two held the lock at the same time: %d sections, %d counted", n, got)
	}
	return nil
}
