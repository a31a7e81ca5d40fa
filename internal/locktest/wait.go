package locktest

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

var waitScenarios = map[string]func(*Env){
	// H1: a place that is given up while Redis cannot be reached is left as soon as it can be, however long that takes,
	// and not when the patience is over for which Redis keeps it.
	"PlaceGivenUpInAnOutageIsLeft": func(e *Env) {
		const outage = 4 * lease // the release of a hold would have been given up by then
		m, p := e.Via(holdfast.WithFairPatience(time.Hour))
		held := e.MustLock(e.Lock(e.Manager(), holdfast.WithLease(time.Hour)))
		ctx, leave := context.WithCancel(bg)
		defer leave()
		left := redistest.Begin(func() error { _, err := e.Lock(m).Lock(ctx); return err })
		e.Queued(1)
		p.Refuse(true)
		p.Cut()
		leave()
		<-left
		time.Sleep(outage)
		p.Refuse(false)
		e.Queued(0)
		e.MustUnlock(held)
		e.Clean(m)
	},

	// L1, L2: woken by the message alone, polling switched off. A hand-off that needed a
	// poll or the TTL would take an hour.
	"IsWokenByTheMessage": func(e *Env) {
		a, b := e.Manager(byMessage...), e.Manager(byMessage...)
		const rounds = 300
		var wg sync.WaitGroup
		var s Section
		for _, m := range []*holdfast.Manager{a, b} {
			wg.Go(func() {
				for range rounds {
					l := e.MustLock(e.Lock(m))
					s.Enter(e, 0)
					e.MustUnlock(l)
				}
			})
		}
		wg.Wait()
		e.Logf("%d wake-ups, %d polls", b.Stats().Wakeups, b.Stats().Polls)
	},

	// Redisson's release, byte for byte, wakes Holdfast's waiter; Holdfast's release publishes what Redisson hears.
	"SharesRedissonsMessages": func(e *Env) {
		m := e.Manager(byMessage...)
		release := e.HeldByRedisson(e.Key)
		got := e.Locking(e.Lock(m))
		e.Eventually("the waiter listens", func() bool { return e.srv.NumSub(e.Channel(e.Key)) == 1 })
		release()
		l := <-got

		fields := e.Holders() // an owner id of Redisson's shape, count 1
		message := "0"
		if e.kind.Write {
			message = "1"
		}
		if len(fields) != 1 {
			e.Errorf("fields %v", fields)
		}
		for owner, count := range fields {
			if e.kind.Write && !strings.HasSuffix(owner, ":write") {
				e.Errorf("field %q of a writer", owner)
			}
			owner = strings.TrimSuffix(owner, ":write")
			if count != "1" || strings.Count(owner, ":") != 1 || !strings.HasPrefix(owner, "hf-") {
				e.Errorf("field %q = %q", owner, count)
			}
		}
		mon := e.srv.Monitor(e)
		e.MustUnlock(l)
		mon.Wait(e, fmt.Sprintf("%q %q %q", "publish", e.Channel(e.Key), message), patience)
	},

	// The message of a grant comes over another connection than the reply that says that
	// the waiter stands in the queue, and can be the first of the two.
	"GrantOvertakesTheReply": func(e *Env) {
		holder := e.Manager(byMessage...)
		m, p := e.Via(byMessage...)
		other := e.kind.Lock(m, e.Key+":other")
		held, heldOther := e.MustLock(e.Lock(holder)), e.MustLock(e.kind.Lock(holder, e.Key+":other"))
		waiting := e.Locking(other)
		e.Listening(1)
		gate := p.HoldReply(acquireOf(e.Key))
		got := e.Locking(e.Lock(m))
		gate.Wait(e)
		e.MustUnlock(held, heldOther)
		e.MustUnlock(<-waiting) // told by a later message of the same connection
		start := time.Now()
		gate.Release()
		l := <-got
		redistest.WantMost(e, time.Since(start), e.bound(lostClaim), "granted %v after the reply")
		e.MustUnlock(l)
		e.Clean(m, Tombstones)
	},

	// First come, first served among the callers of a process.
	"IsFIFOInTheProcess": func(e *Env) {
		m := e.Manager()
		l := e.Lock(m)
		held := e.MustLock(l)
		const n = 100
		var mu sync.Mutex
		var order []int
		var wg sync.WaitGroup
		for i := range n {
			wg.Go(func() {
				got := e.MustLock(l)
				mu.Lock()
				order = append(order, i)
				mu.Unlock()
				e.MustUnlock(got)
			})
			e.Parked(m, i+1)
		}
		e.MustUnlock(held)
		wg.Wait()
		for i, got := range order {
			if i != got {
				e.Fatalf("order %v", order)
			}
		}
	},

	// L6, cancelled while parked: prompt, and no waiter behind is stranded.
	"CancelWhileParkedLeavesNoTrace": func(e *Env) {
		holder, m := e.Manager(), e.Manager()
		held := e.MustLock(e.Lock(holder))
		l := e.Lock(m)
		const n = 10
		results := make([]chan error, n)
		cancels := make([]context.CancelFunc, n)
		for i := range n {
			ctx, cancel := context.WithCancel(bg)
			cancels[i], results[i] = cancel, make(chan error, 1)
			go func() {
				got, err := l.Lock(ctx)
				if err == nil {
					err = got.Unlock(bg)
				}
				results[i] <- err
			}()
			e.Parked(m, i+1)
		}
		e.Listening(1)              // it has been refused
		for i := 0; i < n; i += 2 { // the front of the queue among them
			start := time.Now()
			cancels[i]()
			err := <-results[i]
			redistest.WantMost(e, time.Since(start), e.bound(prompt), "returned %v after the cancel")
			e.Worst("L6:return-after-cancel", time.Since(start))
			e.WantErr(err, holdfast.ErrNotAcquired, context.Canceled)
		}
		e.MustUnlock(held)
		for i := 1; i < n; i += 2 {
			redistest.Check(e, <-results[i])
			cancels[i]()
		}
		e.Clean(m)
	},

	// AC-47: a lock that was left without TTL.
	"ForeignLockWithoutTTLIsPolled": func(e *Env) {
		m := e.Manager(holdfast.WithPollInterval(50 * time.Millisecond))
		e.HeldByRedisson(e.Key)
		e.srv.Admin().Persist(bg, e.Key)
		ctx, cancel := context.WithCancel(bg)
		left := redistest.Begin(func() error { _, err := e.Lock(m).Lock(ctx); return err })
		e.Eventually("it polls", func() bool { return m.Stats().Polls > 2 })
		cancel()
		e.WantErr(<-left, holdfast.ErrNotAcquired, context.Canceled)
		got := e.Parking(m, 1, e.Lock(m))
		e.srv.Admin().Del(bg, e.Key) // and no message
		e.MustUnlock(<-got)
	},

	// AC-48: a thousand waiters are one contender.
	"ThousandWaitersAreOneContender": func(e *Env) {
		holder := e.Manager()
		held := e.MustLock(e.Lock(holder))
		m, p := e.Via()
		l := e.Lock(m)
		_, _ = l.TryLock(bg)
		p.Record()
		const n = 1000
		results := make([]<-chan holdfast.Result, n)
		for i := range results {
			results[i] = e.kind.Async(l, bg)
		}
		e.Listening(1)
		time.Sleep(2 * time.Second) // nothing changes, and little may happen
		// The contender asks about once a second, and more often until it listens; the places
		// of a hundred waiters are kept by one command. It is far fewer than waiters.
		const most = n / 4
		if c := p.Count(isCommand); c > most {
			e.Errorf("%d commands while nothing changed: %q", c, p.Commands())
		}
		e.MustUnlock(held)
		for _, r := range results {
			e.MustUnlock(Granted(e, r))
		}
		if c := p.Count(isCommand); c > 3*n {
			e.Errorf("%d commands for %d hand-overs", c, n)
		}
		e.Logf("%d commands for %d hand-overs", p.Count(isCommand), n)
		e.Clean(m)
	},

	// AC-49: many names, one connection.
	"ManyNamesShareOneConnection": func(e *Env) {
		holder, m := e.Manager(), e.Manager()
		const names, each = 200, 5
		var held []*holdfast.Lease
		var wg sync.WaitGroup
		for i := range names {
			name := fmt.Sprintf("%s:%d", e.Key, i)
			held = append(held, e.MustLock(e.kind.Lock(holder, name)))
			for range each {
				wg.Go(func() { e.MustUnlock(e.MustLock(e.kind.Lock(m, name))) })
			}
		}
		e.Parked(m, names*each)
		e.Eventually("one channel is subscribed", func() bool { return m.Stats().Subscriptions == 1 })
		redistest.Want(e, e.pubSubClients(), 1, "%d pub/sub connections")
		e.MustUnlock(held...)
		wg.Wait()
		e.Clean(m)
	},

	// N waiting processes all get their turn while another one hammers the lock from many
	// goroutines: the hand-off slice ends.
	"BusyProcessLetsOthersIn": func(e *Env) {
		busy, m := e.Manager(), e.Manager()
		ctx, stop := context.WithCancel(bg)
		var wg sync.WaitGroup
		for range 16 {
			wg.Go(func() {
				for {
					l, err := e.Lock(busy).Lock(ctx)
					if err != nil {
						e.WantErr(err, context.Canceled)
						return
					}
					e.tick()
					e.MustUnlock(l)
				}
			})
		}
		for range 20 {
			e.MustUnlock(e.MustLock(e.Lock(m)))
		}
		if twin := e.twin(busy); twin != nil { // L7: Redis tells of waiters of other processes only
			for range 20 {
				e.MustUnlock(e.MustLock(twin))
			}
		}
		stop()
		wg.Wait()
	},
}

// twin returns the FairMutex of the name if the scenario is about a Mutex, and the other way round; nil: there is none.
func (e *Env) twin(m *holdfast.Manager) holdfast.Locker {
	switch {
	case e.kind.Write, e.kind.Permits:
		return nil
	case e.kind.Places:
		return m.Mutex(e.Key)
	}
	return m.FairMutex(e.Key)
}

// pubSubClients returns how many connections are in subscriber mode.
func (e *Env) pubSubClients() int {
	list := e.srv.Admin().Do(bg, "CLIENT", "LIST", "TYPE", "pubsub").String()
	return strings.Count(list, " addr=")
}
