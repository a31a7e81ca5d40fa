package locktest

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast"
)

// loopers locks and unlocks l from n goroutines in tight loops until stop is called,
// which returns how often they got it.
func (e *Env) loopers(l holdfast.Locker, n int) (rounds *atomic.Int64, stop func()) {
	ctx, cancel := context.WithCancel(bg)
	rounds = new(atomic.Int64)
	var wg sync.WaitGroup
	for range n {
		wg.Go(func() {
			for {
				got, err := l.Lock(ctx)
				if err != nil {
					e.WantErr(err, context.Canceled)
					return
				}
				rounds.Add(1)
				e.tick()
				e.MustUnlock(got)
			}
		})
	}
	return rounds, func() { cancel(); wg.Wait() }
}

// waits takes l n times beside others and reports how long that took.
func (e *Env) waits(what string, l holdfast.Locker, n int, between func()) {
	e.Helper()
	var all []time.Duration
	for range n {
		start := time.Now()
		got := e.MustLock(l)
		all = append(all, time.Since(start))
		e.MustUnlock(got)
		between()
	}
	slices.Sort(all)
	e.Logf("%s waits: median %v, longest %v of %d", what, all[n/2], all[n-1], n)
	e.Worst("L9:longest-wait", all[n-1])
	// A slice of 10 ms, a few round trips, and much for a busy machine: a wait that ends
	// with a poll or a claim takes a second or two, and one that is starved has no end.
	if all[n/2] > time.Second/2 || all[n-1] > patience/3 {
		e.Errorf("%s waits", what)
	}
}

// progress returns a function that waits until the counter has moved since its last
// call.
func (e *Env) progress(what string, count func() int64) func() {
	last := count()
	return func() {
		e.Helper()
		e.Eventually(what, func() bool { return count() > last })
		last = count()
	}
}

var rwGateScenarios = map[string]func(*Env){
	// A waiting writer, here or elsewhere, keeps new readers out; those who came after it
	// come in after it.
	"WaitingWriterKeepsNewReadersOut": func(e *Env) {
		for _, local := range []bool{true, false} {
			a, b := e.Manager(), e.Manager()
			if local {
				b = a
			}
			first := e.MustRLock(e.RW(a))
			var mu sync.Mutex
			var order []string
			var wg sync.WaitGroup
			come := func(name string, l holdfast.Locker) {
				wg.Go(func() {
					got := e.MustLock(l)
					mu.Lock()
					order = append(order, name)
					mu.Unlock()
					e.MustUnlock(got)
				})
			}
			come("writer", e.RW(b))
			e.Queued(1)
			outside := e.Manager()
			come("reader", e.RW(outside).RLocker())
			e.Queued(2)
			if local {
				come("reader", e.RW(a).RLocker())
				e.Parked(a, 2)
			}
			ctx, cancel := context.WithCancel(bg)
			leaving := e.RW(e.Manager()).RLockAsync(ctx)
			e.Queued(3)
			e.Listening(3) // it has been refused
			cancel()
			e.WantErr((<-leaving).Err, holdfast.ErrNotAcquired, context.Canceled)
			e.Queued(2) // it has left no place
			e.MustUnlock(first)
			wg.Wait()
			if order[0] != "writer" {
				e.Errorf("local %v: order %v", local, order)
			}
			e.Clean(a)
			e.Clean(b)
			e.Clean(outside)
		}
	},

	// AC-72, L9: eight readers loop without a pause in this process, eight in another one.
	// The writers here and in a third one get in, and so do the readers after each.
	"WriterAgainstLoopingReaders": func(e *Env) {
		e.againstLoopers(func(l *holdfast.RWMutex) (one, many holdfast.Locker) { return l, l.RLocker() })
	},

	// The other way round.
	"ReaderAgainstLoopingWriters": func(e *Env) {
		e.againstLoopers(func(l *holdfast.RWMutex) (one, many holdfast.Locker) { return l.RLocker(), l })
	},

	// All callers at once, without hand-off inside the process.
	"BothSidesWithoutHandoff": func(e *Env) {
		a, b := e.Manager(holdfast.WithHandoffSlice(0)), e.Manager(holdfast.WithHandoffSlice(0))
		var counts []*atomic.Int64
		var stops []func()
		for _, m := range []*holdfast.Manager{a, b} {
			for _, l := range []holdfast.Locker{e.RW(m), e.RW(m).RLocker()} {
				n, stop := e.loopers(l, 3)
				counts, stops = append(counts, n), append(stops, stop)
			}
		}
		for i, n := range counts {
			for range 10 {
				e.progress(fmt.Sprintf("group %d gets on", i), n.Load)()
			}
		}
		for _, stop := range stops {
			stop()
		}
		e.Clean(a, Tombstones)
		e.Clean(b, Tombstones)
	},

	// A writer that is parked behind a fixed-lease reader of its own process, and readers
	// that need holds of their own behind it: no hold of one waits for another's poll.
	"OwnHoldsBehindAWriter": func(e *Env) {
		m := e.Manager(byMessage...)
		first := e.MustRLock(e.RW(m))
		writer := e.Parking(m, 1, e.RW(m))
		fixed := e.Parking(m, 2, e.RW(m, holdfast.WithFixedLease(lease)).RLocker())
		limited := e.Parking(m, 3, e.RW(m, holdfast.WithMaxHold(time.Hour)).RLocker())
		plain := e.Parking(m, 4, e.RW(m).RLocker())
		e.MustUnlock(first)
		w := e.Soon("the writer", writer)
		e.Parked(m, 3)
		e.MustUnlock(w)
		one := e.Soon("the fixed lease", fixed)
		two := e.Soon("the limited reader", limited)
		three := e.Soon("the plain reader", plain)
		e.MustUnlock(one, two, three)
		e.Clean(m)
	},
}

// againstLoopers has callers of one side take the lock between many of the other side.
func (e *Env) againstLoopers(sides func(*holdfast.RWMutex) (one, many holdfast.Locker)) {
	e.Helper()
	m, there, remote := e.Manager(), e.Manager(), e.Manager()
	one, many := sides(e.RW(m))
	rounds, stop := e.loopers(many, 8)
	_, manyThere := sides(e.RW(there))
	_, stopThere := e.loopers(manyThere, 8)
	next := e.progress("the others come in after it", rounds.Load)
	e.waits("a caller of the others' process", one, 50, next)
	oneElsewhere, _ := sides(e.RW(remote))
	e.waits("a caller of another process", oneElsewhere, 50, next)
	stop()
	stopThere()
	for _, m := range []*holdfast.Manager{m, there, remote} {
		e.Clean(m, Tombstones)
	}
}
