package locktest

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

// termScenarios are about when a lease ends by itself: fixed, extended, limited, re-entered.
var termScenarios = map[string]func(*Env){
	// AC-38: fixed lease.
	"FixedIsNeverRenewed": func(e *Env) {
		m := e.Manager()
		l := e.MustLock(e.Lock(m, holdfast.WithFixedLease(time.Second)))
		deadline := l.Deadline()
		ctx := l.Context(bg)
		<-ctx.Done()
		e.promptly(deadline)
		redistest.Want(e, m.Stats().Renewals, 0, "%d renewals")
		e.WantLost(l, holdfast.LostDeadline)
		for range 2 { // AC-18, N6
			e.WantErr(l.Unlock(bg), holdfast.ErrLeaseLost)
		}
		again := e.MustLock(e.Lock(m)) // a renewed lease on the same handle name does not inherit it
		if d := time.Until(again.Deadline()); d < lease/2 {
			e.Errorf("the next lease lasts %v", d)
		}
		e.MustUnlock(again)
		e.Clean(m)
	},

	"ExtendProlongsAndNeverShortens": func(e *Env) {
		m := e.Manager()
		l := e.MustLock(e.Lock(m, holdfast.WithFixedLease(20*time.Second)))
		now := time.Now()
		redistest.Must(e, l.Extend(bg, time.Minute))
		if d := l.Deadline(); d.Before(now.Add(time.Minute)) || d.After(now.Add(90*time.Second)) {
			e.Errorf("deadline in %v", d.Sub(now))
		}
		if d := e.PTTL(); d < 50*time.Second {
			e.Errorf("TTL %v", d)
		}
		before := l.Deadline()
		redistest.Must(e, l.Extend(bg, time.Second))
		if l.Deadline().Before(before) || e.PTTL() < 40*time.Second {
			e.Error("Extend shortened the lease")
		}
		e.WantErr(l.Extend(bg, 0), holdfast.ErrInvalidOption)
		e.srv.Admin().Del(bg, e.Key)
		e.WantErr(l.Extend(bg, time.Second), holdfast.ErrLeaseLost)
		redistest.Want(e, e.srv.Admin().Exists(bg, e.Key).Val(), 0, "Extend made the key again")
	},

	"MaxHoldEndsAStuckHolder": func(e *Env) {
		m, other := e.Manager(), e.Manager()
		const most = lease + time.Second
		start := time.Now()
		l := e.MustLock(e.Lock(m, holdfast.WithMaxHold(most)))
		ctx := l.Context(bg)
		came := make(chan time.Time, 1)
		var next sync.WaitGroup
		next.Go(func() {
			l := e.MustLock(e.Lock(other))
			came <- time.Now()
			e.MustUnlock(l)
		})
		<-ctx.Done()
		if d := time.Since(start); d < most-100*time.Millisecond || d > e.bound(most+prompt) {
			e.Errorf("ended after %v", d)
		}
		e.WantErr(context.Cause(ctx), holdfast.ErrMaxHold)
		e.WantErr(l.Err(), holdfast.ErrMaxHold)
		redistest.Want(e, l.Valid(), false, "valid after its end")
		if d := (<-came).Sub(start); d < most {
			e.Errorf("the next holder came after %v, while the first might still work", d)
		}
		e.WantErr(l.Unlock(bg), holdfast.ErrMaxHold)
		next.Wait()
		e.Clean(m)
	},

	// The limit is the owner's: it does not end with the lease that began it.
	"MaxHoldOutlivesTheFirstLease": func(e *Env) {
		m := e.Manager()
		l := e.Lock(m, holdfast.WithMaxHold(lease))
		outer := e.MustLock(l)
		inner := Got(e, l.Lock, outer.Context(bg))
		e.MustUnlock(outer)
		redistest.Next(e, inner.Done(), "the inner lease has no limit")
		e.WantErr(inner.Err(), holdfast.ErrMaxHold)
		e.WantErr(inner.Unlock(bg), holdfast.ErrMaxHold)
		e.Clean(m)
	},

	// An Unlock that comes at the same moment as the end, before the timer, is no success.
	"UnlockBehindMaxHoldIsTold": func(e *Env) {
		const most = 100 * time.Millisecond
		l := e.Lock(e.Manager(), holdfast.WithLease(most), holdfast.WithMaxHold(most))
		for range 10 {
			held := e.MustLock(l)
			for held.Valid() { // nothing that waits for a timer would be in time
			}
			called := time.Now()
			err := held.Unlock(bg)
			switch {
			case errors.Is(err, holdfast.ErrLeaseLost): // renewal was late
			case err == nil && called.Before(held.Deadline()): // its answer was late, and came behind Valid
			default:
				e.WantErr(err, holdfast.ErrMaxHold)
			}
		}
	},

	// A lease that re-entry returns is valid, also when the timer of the end is late.
	"ReentryBehindMaxHoldIsRefused": func(e *Env) {
		const most = 2 * time.Second // so that renewals come in time, and nothing else ends the lease
		l := e.Lock(e.Manager(), holdfast.WithLease(most), holdfast.WithMaxHold(most))
		for range 3 {
			held := e.MustLock(l)
			ctx := held.Context(bg)
			time.Sleep(most * 3 / 4) // held
			for held.Valid() {       // nothing that waits for a timer would be in time
			}
			again, err := l.Lock(ctx)
			if err == nil {
				e.Errorf("a lease of which Valid says %v", again.Valid())
				_ = again.Unlock(bg)
			}
			_ = held.Unlock(bg)
		}
	},

	// AC-39
	"ReentryDoesNotShortenTheLease": func(e *Env) {
		m := e.Manager(holdfast.WithLease(time.Hour))
		outer := e.MustLock(e.Lock(m))
		inner, err := e.Lock(m, holdfast.WithFixedLease(50*time.Millisecond)).Lock(outer.Context(bg))
		redistest.Must(e, err)
		if d := e.PTTL(); d < 50*time.Second {
			e.Errorf("TTL %v", d)
		}
		if !inner.Deadline().Equal(outer.Deadline()) {
			e.Error("the inner lease has a deadline of its own")
		}
		e.MustUnlock(inner)
		if d := e.PTTL(); d < 50*time.Second || !outer.Valid() {
			e.Errorf("after the inner Unlock: TTL %v, valid %v", d, outer.Valid())
		}
		e.MustUnlock(outer)
	},
}

var fencingScenarios = map[string]func(*Env){
	"ReentryWithFencingNeedsAToken": func(e *Env) {
		m := e.Manager()
		outer := e.MustLock(e.Lock(m))
		_, err := e.Lock(m, holdfast.WithFencing()).Lock(outer.Context(bg))
		e.WantErr(err, holdfast.ErrInvalidOption) // rather than a lease with token 0
		e.MustUnlock(outer)
	},

	// S9, AC-66
	"FencingTokensGrow": func(e *Env) {
		var last uint64
		a, b := e.Manager(), e.Manager()
		check := func(l *holdfast.Lease) {
			e.Helper()
			if l.Token() <= last {
				e.Errorf("token %d after %d", l.Token(), last)
			}
			last = l.Token()
		}
		for range 20 {
			for _, m := range []*holdfast.Manager{a, b} {
				l := e.MustLock(e.Lock(m, holdfast.WithFencing()))
				check(l)
				e.MustUnlock(l)
			}
		}
		l := e.MustLock(e.Lock(a, holdfast.WithFencing(), holdfast.WithFixedLease(50*time.Millisecond)))
		check(l)
		e.WantLost(l, holdfast.LostDeadline)
		l = e.MustLock(e.Lock(b, holdfast.WithFencing()))
		check(l)
		e.srv.Admin().Del(bg, e.Key)
		e.srv.Admin().ScriptFlush(bg)
		l = e.MustLock(e.Lock(a, holdfast.WithFencing()))
		check(l)
		e.MustUnlock(l)
		// AC-65: the counter is lost. This process goes on above what it has seen.
		e.srv.Admin().FlushAll(bg)
		l = e.MustLock(e.Lock(a, holdfast.WithFencing()))
		check(l)
		e.MustUnlock(l)
		// AC-63: the counter is one key without TTL, as Redisson's.
		counter := "redisson_lock_token:{" + e.Key + "}"
		e.srv.RequireNoKeys(e, counter)
		e.srv.RequireTTLs(e, counter)
		if n := e.srv.Admin().Get(bg, counter).Val(); n == "" {
			e.Error("no counter under Redisson's name")
		}
	},
}
