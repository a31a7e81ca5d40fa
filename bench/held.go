package bench

import (
	"context"
	"fmt"
	"strconv"
	"time"
	"unsafe"

	"golang.org/x/sync/errgroup"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/bench/internal/contender"
	"github.com/holdfast-go/holdfast/bench/internal/load"
)

// held asks what locks cost while they are held and nothing happens. Only libraries
// that renew take part.
var held = scenario{
	name:      "held",
	question:  "What do 1,000, 10,000 and 50,000 locks cost a process while it holds them?",
	rows:      counted("locks", 1000, 10_000, 50_000),
	libraries: contender.Pick(contender.Ours, "rueidislock", "r8-pubsub", "redisson"),
	headline:  unitRenewals,
	smaller:   true,
	shown:     []string{unitRenewals, unitHeap, unitBeyond, unitStack, unitRoutines},
	once:      true,
	measure: func(ctx context.Context, t trial) (metrics, error) {
		if t.library.Open == nil {
			return t.heldElsewhere(ctx)
		}
		c, u, err := t.open(ctx, "held", 3*t.tick())
		if err != nil {
			return nil, err
		}
		defer c.Close()
		names := make([]string, t.n)
		for i := range names {
			names[i] = "held:" + strconv.Itoa(i)
		}
		unlocks := make([]func(context.Context) error, t.n)
		// Connections and queues are not a cost of the locks that come now.
		if err := lockAll(ctx, c, names[:lockers], unlocks); err != nil {
			return nil, err
		}
		if err := unlockAll(ctx, unlocks[:lockers]); err != nil {
			return nil, err
		}

		load.GrowGoroutines(t.n)
		before := load.FootprintNow()
		if err := lockAll(ctx, c, names, unlocks); err != nil {
			return nil, err
		}
		after := load.FootprintNow()

		// Renewal is periodic: a whole number of its periods is watched, once the locks
		// have gone through one.
		time.Sleep(t.tick())
		if err := u.Restart(ctx); err != nil {
			return nil, err
		}
		time.Sleep(t.heldTicks() * t.tick())
		sent, err := u.SoFar(ctx)
		if err != nil {
			return nil, err
		}
		if err := unlockAll(ctx, unlocks); err != nil {
			return nil, fmt.Errorf("a lock was not held to the end: %w", err)
		}

		// The unlock function of this module, which is on the heap for every library, is
		// not the library's.
		m := growthPer(before.Until(after), t.n)
		m[unitHeap] -= closureSize
		if t.library.Name == contender.Ours { // how much of it the caller asked for
			m[unitBeyond] = m[unitHeap] - float64(unsafe.Sizeof(holdfast.Lease{}))
		}
		m[unitRenewals] = float64(sent.Commands) / float64(t.n) / float64(t.heldTicks())
		return m, nil
	},
}

const (
	// lockers is how many goroutines take and return the locks.
	lockers = 64

	// closureSize is the heap size of a method value or a closure of one pointer.
	closureSize = 16

	unitRenewals = "cmds/lock/tick"
	unitHeap     = "heap-B"
	unitBeyond   = "heap-B-beyond-lease" // the object that Lock returns
	unitStack    = "stack-B"
	unitRoutines = "goroutines"
)

// tick is a third of the lease, the period of renewal at which Holdfast's figures are
// stated; rueidislock renews after half a lease. It is short, so that several fit into
// the run, but not so short that a library which sends a command for each lock cannot
// keep up.
func (t trial) tick() time.Duration {
	if t.n > 10_000 {
		return 3 * time.Second
	}
	return time.Second
}

// heldTicks is how many ticks are watched.
func (t trial) heldTicks() time.Duration {
	if t.brief() {
		return 1
	}
	return 3
}

// counted are rows of so many locks or waiters.
func counted(what string, counts ...int) []row {
	var rows []row
	for _, n := range counts {
		rows = append(rows, row{name: what + "=" + strconv.Itoa(n), n: n, large: n > 1000})
	}
	return rows
}

// heldElsewhere has another process hold the locks.
func (t trial) heldElsewhere(ctx context.Context) (metrics, error) {
	jobs := []load.Job{{Process: 1, Callers: t.n, Distinct: true, Forever: true, Lease: 3 * t.tick()}}
	s, err := t.fleet(jobs).Standstill(ctx, load.Locked(t.tick()), t.heldTicks()*t.tick())
	if err != nil {
		return nil, err
	}
	m := stillPer(s, t.n)
	m[unitRenewals] = float64(s.Sent.Commands) / float64(t.n) / float64(t.heldTicks())
	return m, nil
}

// lockAll locks names and keeps what unlocks them.
func lockAll(ctx context.Context, c contender.Contender, names []string, unlocks []func(context.Context) error) error {
	return spread(len(names), func(i int) (err error) {
		unlocks[i], err = c.Lock(ctx, names[i])
		return err
	})
}

func unlockAll(ctx context.Context, unlocks []func(context.Context) error) error {
	return spread(len(unlocks), func(i int) error {
		unlock := unlocks[i]
		unlocks[i] = nil
		return unlock(ctx)
	})
}

// spread calls f for 0 to n-1 from a few goroutines and returns the first error.
func spread(n int, f func(i int) error) error {
	var callers errgroup.Group
	callers.SetLimit(lockers)
	for i := range n {
		callers.Go(func() error { return f(i) })
	}
	return callers.Wait()
}

// growthPer is what each of n locks or waiters took.
func growthPer(g load.Growth, n int) metrics {
	return metrics{
		unitHeap:     g.Heap / float64(n),
		unitStack:    g.Stack / float64(n),
		unitRoutines: g.Goroutines / float64(n),
	}
}

// stillPer has threads as goroutines and the whole heap, with garbage, as its threads.
func stillPer(s load.Still, n int) metrics {
	return metrics{
		unitHeap:     float64(s.Taken.Memory) / float64(n),
		unitRoutines: float64(s.Taken.Goroutines) / float64(n),
	}
}
