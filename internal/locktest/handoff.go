package locktest

import (
	"context"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

// handoffScenarios are about what becomes of a hold that is passed on: inside the process,
// by the server, and who is told of it.
var handoffScenarios = map[string]func(*Env){
	// A grant lasts for a claim. Who keeps the lock renews it before that is over, and does not
	// trust it for longer.
	"GrantIsRenewedBeyondTheClaim": func(e *Env) {
		held := e.MustLock(e.Lock(e.Manager(byMessage...)))
		got := e.bystander(e.Manager(byMessage...))
		e.MustUnlock(held)
		l := e.Soon("the waiter", got)
		e.Eventually("Redis keeps it for longer than a claim", func() bool { return e.PTTL() > claim })
		e.Eventually("so does the lease", func() bool { return time.Until(l.Deadline()) > claim })
		e.MustUnlock(l)
	},

	// A fixed lease is not renewed: no claim is good enough for it.
	"FixedLeaseIsGrantedWhole": func(e *Env) {
		held := e.MustLock(e.Lock(e.Manager(byMessage...)))
		got := e.bystander(e.Manager(byMessage...), holdfast.WithFixedLease(time.Minute))
		e.MustUnlock(held)
		l := e.Soon("the waiter", got)
		if left := time.Until(l.Deadline()); left < 30*time.Second {
			e.Errorf("a fixed lease of a minute ends in %v", left)
		}
		e.MustUnlock(l)
	},

	// Nor is what another caller has left of one.
	"FixedLeaseIsNotInherited": func(e *Env) {
		m := e.Manager(byMessage...)
		l := e.Lock(m, holdfast.WithFixedLease(time.Minute))
		first := e.MustLock(l)
		got := e.Parking(m, 1, l)
		e.MustUnlock(first)
		second := e.Soon("the second caller", got)
		if !second.Deadline().After(first.Deadline()) {
			e.Errorf("the second lease ends at %v, the first one at %v", second.Deadline(), first.Deadline())
		}
		e.MustUnlock(second)
	},

	// Where no other process wants the lock, its callers here get it one after the other without
	// Redis: which is asked once per slice whether a process waits.
	"PassedOnWithoutACommand": func(e *Env) {
		if e.kind.Places {
			return // each of its waiters has a place in Redis
		}
		const callers = 50
		for _, slice := range []time.Duration{1, time.Hour} {
			m, p := e.Via(append(byMessage, holdfast.WithHandoffSlice(slice))...)
			l := e.Lock(m)
			held := e.MustLock(l)
			waiting := e.crowd(l, callers, bg)
			p.Record()
			e.MustUnlock(held)
			for _, w := range waiting {
				e.MustUnlock((<-w).Lease)
			}
			if n := m.Stats().HandedOff; n != callers {
				e.Errorf("slice of %v: passed on %d times to %d callers", slice, n, callers)
			}
			if n := p.Count(acquireOf(e.Key)); n != 0 && !e.troubled() {
				e.Errorf("slice of %v: %d acquires", slice, n)
			}
			about := redistest.All(script, redistest.Containing(e.Key))
			if n := p.Count(about); slice == time.Hour && n != 1 && !e.troubled() {
				e.Errorf("%d requests within a slice, want the last release", n)
			}
		}
	},

	// Redisson's plain waiters stand in no queue. A process that is busy with its own callers
	// finds that one listens, and lets go of the lock.
	"BusyProcessTellsAPlainRedissonWaiter": func(e *Env) {
		if e.kind.Places {
			return
		}
		m := e.Manager(append(byMessage, holdfast.WithHandoffSlice(1))...)
		l := e.Lock(m)
		held := e.MustLock(l)
		mon := e.srv.Monitor(e)
		sub := e.srv.Admin().Subscribe(bg, e.Channel(e.Key))
		redistest.Must(e, ErrOf(sub.Receive(bg)))
		ctx, cancel := context.WithCancel(bg)
		defer cancel()
		waiting, told := e.crowd(l, 2000, ctx), sub.Channel()
		served := 0
		for len(told) == 0 && served < len(waiting) {
			e.MustUnlock(held)
			held = (<-waiting[served]).Lease
			served++
			e.srv.Admin().Ping(bg) // the pace: Redis has time to answer others as well
		}
		e.Logf("told after %d callers", served)
		if served == len(waiting) {
			e.Error("all callers were served, and Redisson was not told")
		} else if d := e.leftOpen(mon); d < 1500*time.Microsecond { // Redis may tell late; it never takes the lock early
			e.Errorf("the lock was left to Redisson for %v", d)
		}
		cancel()
		e.MustUnlock(held)
		for _, w := range waiting[served:] {
			if r := <-w; r.Lease != nil {
				e.MustUnlock(r.Lease) // it came before the end of the context
			}
		}
		sub.Close()
		e.Clean(m, Tombstones)
	},

	// The lock is granted to a waiter before its process hears of grants, which it does when the
	// reply that it has to wait comes: nothing but asking tells it then.
	"HeardBetweenTheRequestAndItsReply": func(e *Env) {
		const first = "first:"
		a := e.Manager(byMessage...)
		held, other := e.MustLock(e.kind.Lock(a, first+e.Key)), e.MustLock(e.Lock(a))
		m, p := e.Via(byMessage...)
		gate := p.HoldReply(acquireOf(first + e.Key))
		got := e.Locking(e.kind.Lock(m, first+e.Key))
		gate.Wait(e)
		e.MustUnlock(held)      // granted, and no message arrives
		later := e.bystander(m) // listens for another lock
		gate.Release()
		e.MustUnlock(e.Soon("who was granted the lock", got))
		e.Passes(other, "the other waiter", later)
	},

	// The same if it has heard of grants before: the connection breaks, the lock is granted, and it is
	// heard again before the reply comes.
	"HeardAgainBetweenTheRequestAndItsReply": func(e *Env) {
		const first = "first:"
		a := e.Manager(byMessage...)
		held, other := e.MustLock(e.kind.Lock(a, first+e.Key)), e.MustLock(e.Lock(a))
		m, p := e.Via(byMessage...)
		later := e.bystander(m) // for another lock
		gate := p.HoldReply(acquireOf(first + e.Key))
		got := e.Locking(e.kind.Lock(m, first+e.Key))
		gate.Wait(e)
		again := p.HoldRequest(redistest.Command("subscribe"))
		e.srv.Admin().ClientKillByFilter(bg, "TYPE", "pubsub")
		again.Wait(e)
		e.MustUnlock(held)
		again.Release()
		e.Listening(1)
		e.quiet()
		gate.Release()
		e.MustUnlock(e.Soon("who was granted the lock", got))
		e.Passes(other, "the other waiter", later)
	},

	// A process whose subscription is not confirmed hears nothing of grants, and they keep others
	// out: it asks often.
	"DeafWaiterAsksOften": func(e *Env) {
		held := e.MustLock(e.Lock(e.Manager(byMessage...)))
		m, p := e.Via(byMessage...)
		p.SwallowReply(redistest.Command("subscribe"), 1000) // and what comes after it
		got := e.Locking(e.Lock(m))
		e.Eventually("it has subscribed", func() bool { return e.inboxes() == 1 })
		e.MustUnlock(held)
		start := time.Now()
		l := e.Soon("the waiter", got)
		redistest.WantMost(e, time.Since(start), e.bound(lostClaim), "found its grant after %v")
		e.MustUnlock(l)
	},
}

// leftOpen returns for how long the lock was free after Redisson's waiters had been told so for the
// first time. It is held again.
func (e *Env) leftOpen(mon *redistest.Monitor) time.Duration {
	e.Helper()
	e.caughtUp(mon)
	at := func(line string) float64 {
		seconds, _ := strconv.ParseFloat(line[:strings.IndexByte(line, ' ')], 64)
		return seconds
	}
	told := 0.0
	for _, line := range mon.Lines() {
		switch {
		case told == 0 && strings.Contains(line, `lua] "publish" "`+e.Channel(e.Key)+`"`):
			told = at(line)
		case told != 0 && strings.Contains(line, `lua] "hset" "`+e.Key+`"`):
			return time.Duration((at(line) - told) * float64(time.Second))
		}
	}
	e.Fatal("it was not free, or not taken")
	return 0
}

// crowd begins n calls for l, which its process holds. They are served in this order.
func (e *Env) crowd(l holdfast.Locker, n int, ctx context.Context) (waiting []<-chan holdfast.Result) {
	for range n {
		waiting = append(waiting, e.kind.Async(l, ctx))
	}
	return waiting
}

// grantFaultScenarios are about waiters that die or are stopped when they are granted the
// lock, and about a server that forgets scripts or is restarted meanwhile.
var grantFaultScenarios = map[string]func(*Env){
	// What a process costs the others that dies, or stands still, when it is its turn:
	// nothing, or the claim.
	"KilledGrantee": func(e *Env) {
		held := e.MustLock(e.Lock(e.Manager()))
		p := e.StartWaiter(time.Hour, time.Hour)
		p.Send("lock 0")
		e.Listening(1)
		dead := e.srv.Admin().LIndex(bg, e.queue(), 0).Val()
		got := e.bystander(e.Manager())
		p.Kill()
		e.Listening(1) // Redis knows
		start := time.Now()
		e.MustUnlock(held)
		// In a cluster no node can tell who listens.
		if _, ok := e.Holders()[dead]; ok && e.kind.Client == nil {
			e.Errorf("granted to %s, which is dead", dead)
		}
		l := <-got
		e.Logf("a killed grantee cost %v", time.Since(start))
		redistest.WantMost(e, time.Since(start), e.bound(3*claim), "it cost %v")
		e.MustUnlock(l)
	},

	"StoppedGrantee": func(e *Env) {
		held := e.MustLock(e.Lock(e.Manager(holdfast.WithLease(20 * time.Second)))) // the claim is no longer for it
		p := e.StartWaiter(time.Hour, time.Hour)
		p.Send("lock 0")
		e.Listening(1)
		got := e.bystander(e.Manager())
		p.Pause()
		start := time.Now()
		e.MustUnlock(held)
		l := <-got
		d := time.Since(start)
		e.Worst("L5:behind-one-that-is-stopped", d)
		redistest.WantMost(e, d, e.bound(3*claim), "it cost %v")
		p.Resume() // the message is in its socket, and nothing to be trusted
		select {
		case <-time.After(100 * time.Millisecond):
		case <-l.Done():
			e.Errorf("it disturbed the holder: %v", l.Err())
		}
		e.MustUnlock(l)
		p.Expect(e, "got 0")
		p.Send("unlock 0")
		p.Expect(e, "unlocked 0 <nil>")
	},

	// The server goes and comes back with its data while processes wait for each other.
	"RestartWhileWaiting": func(e *Env) {
		e.Server(redistest.WithAOF())
		a, b := e.Manager(), e.Manager()
		held := e.MustLock(e.Lock(e.Manager(holdfast.WithLease(5 * time.Second))))
		first, second := e.bystander(a), e.bystander(b)
		e.srv.Restart()
		start := time.Now()
		_ = held.Unlock(bg) // its outcome may be unknown; the release goes on
		for range 2 {
			select {
			case l := <-first:
				e.MustUnlock(l)
			case l := <-second:
				e.MustUnlock(l)
			}
		}
		d := time.Since(start)
		e.Logf("both served %v after the restart", d)
		if d > e.bound(5*time.Second+time.Second+prompt) { // a lease and a second, on a slow machine
			e.Errorf("both served only %v after the restart", d)
		}
		e.Eventually("no keys", func() bool { return onlyTombstones(e) })
	},

	"FlushedScriptsWhileHandingOver": func(e *Env) {
		var wg sync.WaitGroup
		var s Section
		stop := make(chan struct{})
		flusher := e.Server().Admin()
		wg.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
					flusher.ScriptFlush(bg)
				}
			}
		})
		var workers sync.WaitGroup
		for range 3 {
			m := e.Manager()
			workers.Go(func() {
				for range 60 {
					l := e.MustLock(e.Lock(m))
					s.Enter(e, 0)
					e.MustUnlock(l)
				}
			})
		}
		workers.Wait()
		close(stop)
		wg.Wait()
	},
}
