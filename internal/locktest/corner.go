package locktest

import (
	"context"
	"log/slog"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

// cornerScenarios are bugs that were found once, each where two features meet.
var cornerScenarios = map[string]func(*Env){
	"UnlockAfterLossAndClose": func(e *Env) {
		m := e.Manager()
		l := e.MustLock(e.Lock(m, holdfast.WithFixedLease(100*time.Millisecond)))
		<-l.Done()
		redistest.Check(e, m.Close(bg))
		e.WantErr(l.Unlock(bg), holdfast.ErrLeaseLost)
	},

	// A session in which nothing happens stays.
	"QuietSubscriptionIsKept": func(e *Env) {
		held := e.MustLock(e.Lock(e.Manager()))
		m := e.Manager()
		got := e.Locking(e.Lock(m))
		e.Listening(1)
		time.Sleep(7 * time.Second) // more than two pings and a pong
		redistest.Want(e, m.Stats().Reconnects, 0, "%d reconnections of a healthy connection")
		e.Passes(held, "the waiter", got)
	},

	// ForceUnlock of a lease that is not renewed: told at once all the same.
	"ForceUnlockOfAFixedLease": func(e *Env) {
		m := e.Manager()
		l := e.MustLock(e.Lock(m, holdfast.WithFixedLease(time.Minute)))
		got := e.Parking(m, 1, e.Lock(m))
		redistest.Must(e, ErrOf(e.ForceUnlock(m)))
		reasons := []holdfast.LostReason{holdfast.LostDeleted}
		if e.kind.Places { // the waiter asks as well, and may have it by the time that Redis is asked
			reasons = append(reasons, holdfast.LostStolen)
		}
		e.WantLost(l, reasons...)
		e.MustUnlock(<-got)
	},

	// The next holder would, by a crash, leave the lock for as long as the one before wanted it.
	"WhatExtendAddedEndsWithUnlock": func(e *Env) {
		m := e.Manager()
		l := e.MustLock(e.Lock(m))
		redistest.Must(e, l.Extend(bg, time.Hour))
		got := e.Parking(m, 1, e.Lock(m))
		e.MustUnlock(l)
		next := <-got
		redistest.WantMost(e, e.srv.Admin().PTTL(bg, e.Key).Val(), lease, "the next has it for %v")
		e.MustUnlock(next)
	},

	// Likewise where the request arrives after the Unlock, and no caller knows what came of it.
	"ExtendThatWasGivenUpEndsWithUnlock": func(e *Env) {
		m, p := e.Via()
		l := e.MustLock(e.Lock(m))
		got := e.Parking(m, 1, e.Lock(m))
		ctx, giveUp := context.WithCancel(bg)
		late := p.HoldRequest(extendOf(e.Key)) // and nothing that who waits asks meanwhile
		extended := redistest.Begin(func() error { return l.Extend(ctx, time.Hour) })
		late.Wait(e)
		giveUp()
		e.WantErr(<-extended, holdfast.ErrUnavailable)
		e.MustUnlock(l)
		next := <-got
		late.Release()
		e.MustUnlock(next)
		if s := m.Stats(); s.HandedOff != 0 {
			e.Error("passed on, with an hour that may be added to it yet")
		}
	},

	// Close has little time, and Unlock is waiting for a server that does not answer.
	"CloseDoesNotUnboundUnlock": func(e *Env) {
		m, p := e.Via()
		l := e.MustLock(e.Lock(m))
		p.BlackHole(true)
		done := make(chan error, 1)
		start := time.Now()
		go func() { done <- l.Unlock(bg) }()
		e.Eventually("the release has begun", func() bool { return l.Err() != nil })
		ctx, cancel := context.WithTimeout(bg, 100*time.Millisecond)
		defer cancel()
		_ = m.Close(ctx)
		e.WantErr(<-done, holdfast.ErrUnavailable)
		redistest.WantMost(e, time.Since(start), e.bound(time.Second+prompt), "Unlock took %v")
	},

	// TryLock joins a queue whose requests have all gone unanswered.
	"TryLockBehindUnansweredRequests": func(e *Env) {
		m, p := e.Via(holdfast.WithLease(400 * time.Millisecond))
		e.MustUnlock(e.MustLock(e.Lock(m, holdfast.WithLease(time.Hour))))
		p.BlackHole(true)
		ctx, cancel := context.WithCancel(bg)
		defer cancel()
		go func() { _, _ = e.Lock(m).Lock(ctx) }()
		e.Eventually("four copies", func() bool { return m.Stats().Troubles >= 4 })
		start := time.Now()
		_, err := e.Lock(m).TryLock(bg)
		redistest.WantMost(e, time.Since(start), e.bound(prompt), "took %v")
		e.WantErr(err, holdfast.ErrUnavailable)
	},

	// Redis is silent, and all that is known is that our own release is under way.
	"SilenceDuringAReleaseIsNoRefusal": func(e *Env) {
		m, p := e.Via()
		l := e.MustLock(e.Lock(m))
		p.BlackHole(true)
		go func() { _ = l.Unlock(bg) }()
		e.Eventually("the release has begun", func() bool { return l.Err() != nil })
		ctx, cancel := context.WithTimeout(bg, 200*time.Millisecond)
		defer cancel()
		_, err := e.Lock(m).TryLock(ctx)
		e.WantErr(err, holdfast.ErrUnavailable)
		e.WantNotErr(err, holdfast.ErrNotAcquired)
	},

	// The first copy of an acquire is late, the second is granted, the lock is deleted:
	// the first must not take the lock without a caller.
	"LateCopyAfterALoss": func(e *Env) {
		m, p := e.Via(holdfast.WithLease(3 * time.Second))
		e.MustUnlock(e.MustLock(e.Lock(m)))
		gate := p.HoldFirstRequest(acquireOf(e.Key))
		l := e.MustLock(e.Lock(m))
		gate.Wait(e)
		e.srv.Admin().Del(bg, e.Key)
		<-l.Done()
		e.WantErr(l.Unlock(bg), holdfast.ErrLeaseLost)
		e.Eventually("the manager is done", func() bool { return m.Stats().Locks == 0 })
		mon := e.srv.Monitor(e)
		gate.Release()
		mon.Wait(e, `"zscore"`, patience)
		redistest.Want(e, e.srv.Admin().Exists(bg, e.Key).Val(), 0, "taken by nobody")
	},

	// A release that wants a tombstone, and no memory for one.
	"ReleaseUnderOOMAfterALostReply": func(e *Env) {
		m, p := e.Via()
		e.MustUnlock(e.MustLock(e.Lock(m)))
		p.LoseReply(acquireOf(e.Key), 1)
		l := e.MustLock(e.Lock(m))
		e.srv.Admin().ConfigSet(bg, "maxmemory", "1")
		e.MustUnlock(l)
		e.srv.Admin().ConfigSet(bg, "maxmemory", "0")
		e.Clean(m, Tombstones)
	},

	// A channel that was wanted and deserted while the connection was being made.
	"DesertedBeforeItWasSubscribed": func(e *Env) {
		release, releaseOther := e.HeldByRedisson(e.Key), e.HeldByRedisson(e.Key+":other")
		m, p := e.Via()
		_, _ = e.Lock(m).TryLock(bg) // its connection for commands is open
		gate := p.HoldFirstRequest(redistest.Command("hello"))
		got := e.Locking(e.Lock(m))
		gate.Wait(e)
		ctx, cancel := context.WithTimeout(bg, 100*time.Millisecond)
		defer cancel()
		_, err := e.kind.Lock(m, e.Key+":other").Lock(ctx)
		e.WantErr(err, context.DeadlineExceeded)
		time.Sleep(time.Second) // the linger time is over
		gate.Release()
		e.Eventually("the other is subscribed", func() bool { return e.srv.NumSub(e.Channel(e.Key)) == 1 })
		redistest.Want(e, e.srv.NumSub(e.Channel(e.Key+":other")), 0, "subscribed to a channel that nobody wants")
		release()
		e.MustUnlock(<-got)
		releaseOther()
	},

	// A handler of the logger is user code: no mutex of Holdfast is held while it runs.
	"LogHandlerMayUseTheLease": func(e *Env) {
		locked := make(chan *holdfast.Lease, 1)
		handled := make(chan error, 1)
		m := e.Manager(holdfast.WithLogger(slog.New(onLog{slog.DiscardHandler, func() { handled <- (<-locked).Err() }})))
		locked <- e.MustLock(e.Lock(m, holdfast.WithFixedLease(100*time.Millisecond)))
		e.WantErr(redistest.Next(e, handled, "the handler hangs"), holdfast.ErrLeaseLost)
	},

	"ExtendBeyondMaxHold": func(e *Env) {
		m := e.Manager()
		l := e.MustLock(e.Lock(m, holdfast.WithFixedLease(20*time.Second), holdfast.WithMaxHold(20*time.Second)))
		e.WantErr(l.Extend(bg, time.Minute), holdfast.ErrInvalidOption)
		redistest.WantMost(e, e.PTTL(), 20*time.Second, "TTL %v")
		e.MustUnlock(l)
	},

	// The waiter that leaves the queue has asked Redis for the lock, but not in the way in which the next one wants it.
	"OtherOptionsThanOfOneWhoLeft": func(e *Env) {
		m := e.Manager()
		held := e.MustLock(e.Lock(e.Manager()))
		ctx, cancel := context.WithCancel(bg)
		left := e.kind.Async(e.Lock(m), ctx)
		e.Listening(1)
		got := e.Parking(m, 2, e.Lock(m, holdfast.WithFencing()))
		cancel()
		e.WantErr((<-left).Err, context.Canceled)
		e.MustUnlock(held)
		l := e.Soon("the next", got)
		if l.Token() == 0 {
			e.Error("no token")
		}
		e.MustUnlock(l)
		e.Clean(m, Tokens, Tombstones)
	},

	"HandoffSliceZeroReleasesEachTime": func(e *Env) {
		m := e.Manager(holdfast.WithHandoffSlice(0))
		var done []chan struct{}
		held := e.MustLock(e.Lock(m))
		for range 5 {
			c := make(chan struct{})
			done = append(done, c)
			go func() {
				defer close(c)
				e.MustUnlock(e.MustLock(e.Lock(m)))
			}()
		}
		e.Parked(m, 5)
		e.MustUnlock(held)
		for _, c := range done {
			<-c
		}
		redistest.Want(e, m.Stats().HandedOff, 0, "%d hand-offs")
		e.Clean(m)
	},
}
