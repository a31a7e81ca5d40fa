package locktest

import (
	"context"
	"errors"
	"regexp"
	"slices"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

// places returns the ids that stand in the queue, and for how many of them there is a
// time until when their place is kept.
func (e *Env) places() (ids []string, kept int64) {
	e.Helper()
	admin := e.Server().Admin()
	return admin.LRange(bg, "redisson_lock_queue:{"+e.Key+"}", 0, -1).Val(),
		admin.ZCard(bg, "redisson_lock_timeout:{"+e.Key+"}").Val()
}

// Enqueue begins n calls of Lock at m, one after the other: each stands in the queue
// before the next one comes.
func (e *Env) Enqueue(m *holdfast.Manager, n int) []<-chan *holdfast.Lease {
	e.Helper()
	ids, _ := e.places()
	var all []<-chan *holdfast.Lease
	for i := range n {
		got := e.Locking(e.Lock(m))
		e.Queued(int64(len(ids) + i + 1))
		all = append(all, got)
	}
	return all
}

// history reads from the server's own log who came, in order, and who was granted the
// lock, in order.
func (e *Env) history(mon *redistest.Monitor) (came, granted []string) {
	e.Helper()
	e.caughtUp(mon)
	push := regexp.MustCompile(`lua\] "rpush" "redisson_lock_queue:\{` + e.Key + `\}" "([^"]+)"`)
	grant := regexp.MustCompile(`lua\] "hset" "` + e.Key + `" "([^"]+)"`)
	for _, line := range mon.Lines() {
		if m := push.FindStringSubmatch(line); m != nil {
			came = append(came, m[1])
		} else if m := grant.FindStringSubmatch(line); m != nil {
			granted = append(granted, m[1])
		}
	}
	return came, granted
}

// fairScenarios are for kinds whose waiters have a place each. L5.
var fairScenarios = map[string]func(*Env){
	// A place in the queue is kept as a hold is, and is none.
	"WaitersAreNotHolders": func(e *Env) {
		held, m := e.MustLock(e.Lock(e.Manager())), e.Manager()
		waiting := e.Enqueue(m, 3)
		if s := m.Stats(); s.Held != 0 || s.Waiting != 3 {
			e.Errorf("%d held, %d waiting", s.Held, s.Waiting)
		}
		e.MustUnlock(held)
		first := <-waiting[0]
		if s := m.Stats(); s.Held != 1 || s.Waiting != 2 {
			e.Errorf("then %d held, %d waiting", s.Held, s.Waiting)
		}
		e.MustUnlock(first)
		for _, got := range waiting[1:] {
			e.MustUnlock(<-got)
		}
	},

	// AC-58: 20 waiters of four processes, 20 ms apart; the order is the server's.
	"OrderOfArrivalOverProcesses": func(e *Env) {
		managers := []*holdfast.Manager{e.Manager(), e.Manager(), e.Manager(), e.Manager()}
		const rounds, n = 5, 20
		for round := range rounds {
			held := e.MustLock(e.Lock(e.Manager()))
			mon := e.srv.Monitor(e)
			var wg sync.WaitGroup
			for i := range n {
				wg.Go(func() { e.MustUnlock(e.MustLock(e.Lock(managers[i%len(managers)]))) })
				time.Sleep(20 * time.Millisecond) // so they come
			}
			e.Queued(n)
			e.MustUnlock(held)
			wg.Wait()
			came, granted := e.history(mon)
			if len(came) != n || !slices.Equal(came, granted) {
				e.Fatalf("round %d: came\n%q, granted\n%q", round, came, granted)
			}
		}
	},

	// AC-59: the holder goes on and on; no waiter loses a place by waiting for long.
	"LongWaitKeepsThePlace": func(e *Env) {
		const kept = 2 * time.Second
		held := e.MustLock(e.Lock(e.Manager()))
		a, b := e.Manager(holdfast.WithFairPatience(kept)), e.Manager(holdfast.WithFairPatience(kept))
		mon := e.srv.Monitor(e)
		first := e.Enqueue(a, 3)
		second := e.Enqueue(b, 2)
		before, _ := e.places()
		for over := time.After(3 * kept); ; {
			ids, times := e.places()
			if !slices.Equal(ids, before) || times != int64(len(ids)) {
				e.Fatalf("the queue has become %q, %d kept, from %q", ids, times, before)
			}
			select {
			case <-over:
			case <-time.After(20 * time.Millisecond):
				continue
			}
			break
		}
		e.MustUnlock(held)
		for _, got := range append(first, second...) {
			e.MustUnlock(<-got)
		}
		if _, granted := e.history(mon); !slices.Equal(granted, before) {
			e.Errorf("granted\n%q, came\n%q", granted, before)
		}
	},

	// A caller that leaves, leaves the queue, even if Redis cannot be reached just then.
	"LeavingLeavesTheQueue": func(e *Env) {
		srv := e.Server()
		for _, tc := range []struct {
			name   string
			before func()
			after  func()
		}{
			{"healthy", func() {}, func() {}},
			{"frozen", srv.Pause, srv.Resume},
			{"writes paused", func() { srv.Admin().Do(bg, "CLIENT", "PAUSE", "700", "WRITE") }, func() {}},
		} {
			held := e.MustLock(e.Lock(e.Manager(holdfast.WithLease(10 * time.Second))))
			// No place runs out by itself.
			m, closing := e.Manager(holdfast.WithFairPatience(time.Minute)), e.Manager(holdfast.WithFairPatience(time.Minute))
			ctx, cancel := context.WithCancel(bg)
			later, stop := context.WithCancel(bg)
			results := make(chan error, 3)
			for i, wait := range []struct {
				m   *holdfast.Manager
				ctx context.Context
			}{{m, ctx}, {m, later}, {closing, bg}} {
				go func() { _, err := e.Lock(wait.m).Lock(wait.ctx); results <- err }()
				e.Queued(int64(i + 1))
			}
			stays := e.Enqueue(m, 1)[0]
			e.Eventually("all hear", func() bool { return e.attentive(e.Key) }) // a Close in trouble cannot take back what a request under way may do
			tc.before()
			left := time.Now()
			cancel()
			time.AfterFunc(300*time.Millisecond, stop) // Redis is still in trouble
			_ = closing.Close(bg)
			for range 3 {
				if err := <-results; err == nil {
					e.Errorf("%s: granted", tc.name)
				}
			}
			if d := time.Since(left); d > e.bound(time.Second+prompt) {
				e.Errorf("%s: returned after %v", tc.name, d)
			}
			tc.after()
			healed := time.Now()
			e.Eventually(tc.name+": only one stands", func() bool {
				ids, kept := e.places()
				return len(ids) == 1 && kept == 1
			})
			e.Logf("%s: gone %v after", tc.name, time.Since(healed).Round(time.Millisecond))
			e.Passes(held, "the waiter", stays)
			e.Clean(m, Tombstones)
		}
	},

	"TryLockNeverStandsInTheQueue": func(e *Env) {
		held := e.MustLock(e.Lock(e.Manager()))
		m := e.Manager()
		mon := e.srv.Monitor(e)
		for range 20 {
			_, err := e.TryLock(e.Lock(m))
			e.WantErr(err, holdfast.ErrNotAcquired)
		}
		waits := e.Enqueue(m, 1)[0]
		_, err := e.Lock(m).TryLock(bg) // behind one that waits
		e.WantErr(err, holdfast.ErrNotAcquired)
		e.Passes(held, "the waiter", waits)
		if came, _ := e.history(mon); len(came) != 1 {
			e.Errorf("came: %q", came)
		}
		e.Clean(m)
	},

	// Between two that wait comes a caller that does not. The first's request is late: the third
	// must not be in the queue before it.
	"TryLockBetweenTwoKeepsTheirOrder": func(e *Env) {
		held := e.MustLock(e.Lock(e.Manager()))
		m, p := e.Via()
		late := p.HoldRequest(acquireOf(e.Key)) // the first's, TryLock's, and the copies of both
		first := e.Locking(e.Lock(m))
		late.Wait(e)
		tried := redistest.Begin(func() error { _, err := e.Lock(m).TryLock(bg); return err })
		e.Parked(m, 2)
		third := e.Parking(m, 3, e.Lock(m))
		for range 5 { // what has been sent for it would be there by then
			e.MustUnlock(e.MustLock(m.Mutex(e.Key + ":other")))
		}
		if ids, _ := e.places(); len(ids) != 0 {
			e.Errorf("%q came before the first", ids)
		}
		late.Release()
		if err := <-tried; !errors.Is(err, holdfast.ErrUnavailable) { // it had no answer for long, if the machine is busy
			e.WantErr(err, holdfast.ErrNotAcquired)
		}
		e.Queued(2)
		e.Passes(held, "the first", first)
		e.MustUnlock(e.Soon("the third", third))
	},

	// AC-60: callers that come and give up again and again move no other waiter's time.
	"GivingUpLeavesNoDrift": func(e *Env) {
		holder := e.Manager()
		held := e.MustLock(e.Lock(holder))
		var wg sync.WaitGroup
		for range 3 {
			m := e.Manager()
			wg.Go(func() {
				for range 100 {
					ctx, cancel := context.WithTimeout(bg, 15*time.Millisecond)
					_, err := e.Lock(m).Lock(ctx)
					cancel()
					e.WantErr(err, context.DeadlineExceeded)
				}
			})
		}
		wg.Wait()
		e.Queued(0)
		m := e.Manager()
		waits := e.Enqueue(m, 1)[0]
		times := e.srv.Admin().ZRangeWithScores(bg, "redisson_lock_timeout:{"+e.Key+"}", 0, -1).Val()
		now := e.srv.Admin().Time(bg).Val()
		if len(times) != 1 {
			e.Fatalf("times %v", times)
		}
		if left := time.UnixMilli(int64(times[0].Score)).Sub(now); left < 2*time.Second || left > 5*time.Second+time.Millisecond {
			e.Errorf("the place is kept for %v", left)
		}
		start := time.Now()
		e.Passes(held, "the waiter", waits)
		redistest.WantMost(e, time.Since(start), e.bound(prompt), "served after %v")
		e.Clean(m, Tombstones)
	},

	// W2: in front of the waiter stand places of the process itself, whose callers have left. It looks at four places.
	"WantedBehindPlacesThatWereLeft": func(e *Env) {
		for _, left := range []int64{3, 4} {
			m, p := e.Via(byMessage...)
			l := e.MustLock(e.Lock(m))
			ctx, leave := context.WithCancel(bg)
			for i := range left {
				e.kind.Async(e.Lock(m), ctx)
				e.Queued(i + 1)
			}
			waiting := e.InQueue(left+1, e.Lock(e.Manager(byMessage...)))
			gate := p.HoldRequest(ScriptOn(e.Key, "lock_release", "leave"))
			leave()
			e.Parked(m, 0)
			if left < 4 {
				e.wantedWithin(100*time.Millisecond, l)
			} else {
				l.Wanted()
				e.quiet()
				e.unwanted(l)
			}
			gate.Release()
			e.wantedWithin(time.Second+100*time.Millisecond, l)
			e.Passes(l, "the waiter", waiting)
			e.Clean(m)
		}
	},
}
