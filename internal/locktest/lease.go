package locktest

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

var leaseScenarios = map[string]func(*Env){
	// AC-28
	"IsRenewedWhileHeld": func(e *Env) {
		m := e.Manager()
		l := e.MustLock(e.Lock(m))
		first := l.Deadline()
		least := time.Hour
		for m.Stats().Renewals < 6 { // two leases
			if d := e.PTTL(); d < least {
				least = d
			}
			if !l.Valid() {
				e.Fatalf("invalid while held: %v", l.Err())
			}
			time.Sleep(10 * time.Millisecond)
		}
		if least < lease/3 {
			e.Errorf("the TTL went down to %v of %v", least, lease)
		}
		if !l.Deadline().After(first) {
			e.Error("the deadline did not move on")
		}
		e.MustUnlock(l)
		renewals := m.Stats().Renewals
		time.Sleep(lease*2/3 + lease/10) // two periods in which nothing may happen
		if n := m.Stats().Renewals; n != renewals {
			e.Errorf("%d renewals after Unlock", n-renewals)
		}
	},

	// AC-29: connections die all the time, the lease does not.
	"SurvivesKilledConnections": func(e *Env) {
		m := e.Manager()
		l := e.MustLock(e.Lock(m))
		for m.Stats().Renewals < 6 {
			e.srv.Admin().Do(bg, "CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
			time.Sleep(150 * time.Millisecond)
			if l.Err() != nil {
				e.Fatalf("lost: %v", l.Err())
			}
		}
		e.MustUnlock(l)
	},

	// AC-31, N4, S6
	"DeletedKeyIsNoticedAndNotRecreated": func(e *Env) {
		m := e.Manager()
		l := e.MustLock(e.Lock(m))
		ctx := l.Context(bg)
		start := time.Now()
		e.srv.Admin().Del(bg, e.Key)
		e.WantLost(l, holdfast.LostDeleted)
		e.Worst("N4:noticed-after", time.Since(start))
		<-ctx.Done()
		e.WantErr(context.Cause(ctx), holdfast.ErrLeaseLost)
		if l.Valid() {
			e.Error("valid after loss")
		}
		e.WantErr(l.Unlock(bg), holdfast.ErrLeaseLost)
		e.Clean(m)
	},

	// N4 with another holder.
	"StolenLockIsLeftToTheThief": func(e *Env) {
		m := e.Manager()
		l := e.MustLock(e.Lock(m))
		e.srv.Admin().Del(bg, e.Key)
		other := e.MustLock(e.Lock(e.Manager()))
		e.WantLost(l, holdfast.LostStolen)
		if !other.Valid() {
			e.Error("the other holder was disturbed")
		}
		e.MustUnlock(other)
	},

	// AC-32, F15
	"TamperedTTLIsRestored": func(e *Env) {
		m := e.Manager()
		l := e.MustLock(e.Lock(m))
		e.srv.Admin().Persist(bg, e.Key)
		e.Eventually("a TTL again", func() bool { return e.PTTL() > 0 })
		e.srv.Admin().PExpire(bg, e.Key, lease*9/10) // shorter than it was, longer than a period
		e.Eventually("the full TTL again", func() bool { return e.PTTL() > lease*92/100 })
		e.MustUnlock(l)
	},

	// AC-30, F2
	"RestartWithoutDataIsALoss": func(e *Env) {
		m := e.Manager(holdfast.WithLease(2 * lease)) // long enough for the restart
		l := e.MustLock(e.Lock(m))
		e.srv.Restart()
		e.WantLost(l, holdfast.LostDeleted)
		again := e.MustLock(e.Lock(m)) // and the next one is renewed
		n := m.Stats().Renewals
		e.Eventually("renewals", func() bool { return m.Stats().Renewals > n })
		e.MustUnlock(again)
	},

	// F3
	"RestartWithDataIsNone": func(e *Env) {
		e.Server(redistest.WithAOF())
		m := e.Manager(holdfast.WithLease(6 * time.Second))
		l := e.MustLock(e.Lock(m))
		e.srv.Restart()
		n := m.Stats().Renewals
		e.Eventually("a renewal", func() bool { return m.Stats().Renewals > n })
		if l.Err() != nil {
			e.Errorf("lost: %v", l.Err())
		}
		e.MustUnlock(l)
	},

	// AC-34: frozen for most of a lease, right after a confirmation.
	"FreezeWithinTheLeaseIsNoLoss": func(e *Env) {
		const ttl = 4 * lease // of which a fifth is left
		m := e.Manager(holdfast.WithLease(ttl))
		l := e.MustLock(e.Lock(m))
		e.Server().Pause()
		time.Sleep(ttl * 8 / 10)
		e.srv.Resume()
		n := m.Stats().Renewals
		e.Eventually("a renewal", func() bool { return m.Stats().Renewals > n })
		if l.Err() != nil {
			e.Errorf("lost: %v", l.Err())
		}
		e.MustUnlock(l)
	},

	// AC-34, N1: frozen for longer. Told by the deadline, which is before the server can
	// give the lock to anybody.
	"LongFreezeIsToldByTheDeadline": func(e *Env) {
		m := e.Manager()
		l := e.MustLock(e.Lock(m))
		deadline := l.Deadline()
		e.Server().Pause()
		<-l.Done()
		e.Worst("N1:after-the-deadline", e.promptly(deadline))
		e.WantLost(l, holdfast.LostDeadline)
		e.srv.Resume()
		e.WantErr(l.Unlock(bg), holdfast.ErrLeaseLost)
		e.Clean(m)
	},

	// N1 through a black hole: nothing comes back, not even an error.
	"BlackHoleIsToldByTheDeadline": func(e *Env) {
		m, p := e.Via()
		l := e.MustLock(e.Lock(m))
		deadline := l.Deadline()
		p.BlackHole(true)
		<-l.Done()
		e.promptly(deadline)
	},

	// N3: a short black hole kills the connections that lost bytes; renewal goes on over
	// new ones in time.
	"ShortBlackHoleIsNoLoss": func(e *Env) {
		m, p := e.Via(holdfast.WithLease(2 * lease))
		l := e.MustLock(e.Lock(m))
		e.Eventually("the first renewal", func() bool { return m.Stats().Renewals > 0 })
		p.BlackHole(true)
		e.Eventually("a renewal has gone in", func() bool { return m.Stats().Commands > 3 })
		time.Sleep(300 * time.Millisecond)
		p.BlackHole(false)
		n := m.Stats().Renewals
		e.Eventually("a renewal", func() bool { return m.Stats().Renewals > n })
		if l.Err() != nil {
			e.Errorf("lost: %v", l.Err())
		}
		e.MustUnlock(l)
	},

	// AC-35
	"SlowServerWithManyLocks": func(e *Env) {
		const n = 1000
		m := e.Manager(holdfast.WithLease(2 * lease))
		leases := make([]*holdfast.Lease, n)
		for i := range leases {
			leases[i] = e.MustLock(e.kind.Lock(m, e.Key+string(rune('a'+i%26))+time.Duration(i).String()))
		}
		for range 12 { // one lease and more
			e.srv.Admin().Do(bg, "DEBUG", "SLEEP", "0.6")
			time.Sleep(20 * time.Millisecond) // one turn of Redis's loop reads 16 KB of each connection
		}
		for _, l := range leases {
			if l.Err() != nil {
				e.Fatalf("lost: %v", l.Err())
			}
		}
		s := m.Stats()
		e.Logf("%d renewals, %d failures, %d commands in %d batches", s.Renewals, s.RenewalFailures, s.Commands, s.Batches)
		if s.Held != n {
			e.Errorf("%d held", s.Held)
		}
	},

	// AC-38: fixed lease.
	"FixedIsNeverRenewed": func(e *Env) {
		m := e.Manager()
		l := e.MustLock(e.Lock(m, holdfast.WithFixedLease(time.Second)))
		deadline := l.Deadline()
		ctx := l.Context(bg)
		<-ctx.Done()
		e.promptly(deadline)
		if n := m.Stats().Renewals; n != 0 {
			e.Errorf("%d renewals", n)
		}
		e.WantLost(l, holdfast.LostDeadline)
		again := e.MustLock(e.Lock(m)) // a renewed lease on the same handle name does not inherit it
		if d := time.Until(again.Deadline()); d < lease/2 {
			e.Errorf("the next lease lasts %v", d)
		}
		e.MustUnlock(again)
	},

	"ExtendProlongsAndNeverShortens": func(e *Env) {
		m := e.Manager()
		l := e.MustLock(e.Lock(m, holdfast.WithFixedLease(20*time.Second)))
		now := time.Now()
		if err := l.Extend(bg, time.Minute); err != nil {
			e.Fatal(err)
		}
		if d := l.Deadline(); d.Before(now.Add(time.Minute)) || d.After(now.Add(90*time.Second)) {
			e.Errorf("deadline in %v", d.Sub(now))
		}
		if d := e.PTTL(); d < 50*time.Second {
			e.Errorf("TTL %v", d)
		}
		before := l.Deadline()
		if err := l.Extend(bg, time.Second); err != nil {
			e.Fatal(err)
		}
		if l.Deadline().Before(before) || e.PTTL() < 40*time.Second {
			e.Error("Extend shortened the lease")
		}
		e.WantErr(l.Extend(bg, 0), holdfast.ErrInvalidOption)
		e.srv.Admin().Del(bg, e.Key)
		e.WantErr(l.Extend(bg, time.Second), holdfast.ErrLeaseLost)
		if n := e.srv.Admin().Exists(bg, e.Key).Val(); n != 0 {
			e.Error("Extend made the key again")
		}
	},

	"MaxHoldEndsAStuckHolder": func(e *Env) {
		m, other := e.Manager(), e.Manager()
		const most = lease + time.Second
		start := time.Now()
		l := e.MustLock(e.Lock(m, holdfast.WithMaxHold(most)))
		ctx := l.Context(bg)
		got := make(chan time.Time, 1)
		go func() {
			next := e.MustLock(e.Lock(other))
			got <- time.Now()
			e.MustUnlock(next)
		}()
		<-ctx.Done()
		if d := time.Since(start); d < most-100*time.Millisecond || d > most+prompt {
			e.Errorf("ended after %v", d)
		}
		e.WantErr(context.Cause(ctx), holdfast.ErrMaxHold)
		e.WantErr(l.Err(), holdfast.ErrMaxHold)
		if l.Valid() {
			e.Error("valid after its end")
		}
		if d := (<-got).Sub(start); d < most {
			e.Errorf("the next holder came after %v, while the first might still work", d)
		}
		e.WantErr(l.Unlock(bg), holdfast.ErrMaxHold)
		e.Clean(m)
	},

	// The limit is the owner's: it does not end with the lease that began it.
	"MaxHoldOutlivesTheFirstLease": func(e *Env) {
		m := e.Manager()
		l := e.Lock(m, holdfast.WithMaxHold(lease))
		outer := e.MustLock(l)
		inner, err := l.Lock(outer.Context(bg))
		if err != nil {
			e.Fatal(err)
		}
		e.MustUnlock(outer)
		select {
		case <-inner.Done():
		case <-time.After(patience):
			e.Fatal("the inner lease has no limit")
		}
		e.WantErr(inner.Err(), holdfast.ErrMaxHold)
		e.WantErr(inner.Unlock(bg), holdfast.ErrMaxHold)
		e.Clean(m)
	},

	// And it ends with the owner: the next one has its own.
	"MaxHoldBeginsAnewByHandoff": func(e *Env) {
		m := e.Manager(holdfast.WithHandoffSlice(time.Hour))
		l := e.Lock(m, holdfast.WithMaxHold(lease))
		first := e.MustLock(l)
		got := e.Locking(l)
		e.Parked(m, 1)
		time.Sleep(lease / 3)
		start := time.Now()
		e.MustUnlock(first)
		second := <-got
		<-second.Done()
		if d := time.Since(start); d < lease-100*time.Millisecond {
			e.Errorf("the second owner had %v", d)
		}
		e.WantErr(second.Unlock(bg), holdfast.ErrMaxHold)
		e.Clean(m)
	},

	"MaxHoldIsReleasedByUnlock": func(e *Env) {
		m := e.Manager()
		l := e.MustLock(e.Lock(m, holdfast.WithLease(20*time.Second), holdfast.WithMaxHold(20*time.Second)))
		l2 := e.MustLock(e.kind.Lock(m, e.Key+"2", holdfast.WithMaxHold(lease)))
		<-l2.Done()
		e.WantErr(l2.Unlock(bg), holdfast.ErrMaxHold)
		e.MustUnlock(l)
		e.Clean(m)
	},

	// AC-39
	"ReentryDoesNotShortenTheLease": func(e *Env) {
		m := e.Manager(holdfast.WithLease(time.Minute))
		outer := e.MustLock(e.Lock(m))
		inner, err := e.Lock(m, holdfast.WithFixedLease(50*time.Millisecond)).Lock(outer.Context(bg))
		if err != nil {
			e.Fatal(err)
		}
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

	"ReentryWithFencingNeedsAToken": func(e *Env) {
		m := e.Manager()
		outer := e.MustLock(e.Lock(m))
		_, err := e.Lock(m, holdfast.WithFencing()).Lock(outer.Context(bg))
		e.WantErr(err, holdfast.ErrInvalidOption) // rather than a lease with token 0
		e.MustUnlock(outer)
	},

	// AC-43: the context of the acquisition does not own the lease.
	"ContextOfLockDoesNotOwnTheLease": func(e *Env) {
		m := e.Manager()
		ctx, cancel := context.WithCancel(bg)
		l, err := e.Lock(m).Lock(ctx)
		if err != nil {
			e.Fatal(err)
		}
		derived := l.Context(bg)
		cancel()
		if !l.Valid() || derived.Err() != nil {
			e.Error("the lease ended with the context of Lock")
		}
		e.MustUnlock(l)
		<-derived.Done()
		e.WantErr(context.Cause(derived), holdfast.ErrReleased)
		late := l.Context(bg)
		e.WantErr(context.Cause(late), holdfast.ErrReleased)
		parent, cancel2 := context.WithCancelCause(bg)
		l = e.MustLock(e.Lock(m))
		derived = l.Context(parent)
		mine := errors.New("mine")
		cancel2(mine)
		<-derived.Done()
		e.WantErr(context.Cause(derived), mine) // N5
		if !l.Valid() {
			e.Error("the lease ended with a context derived from it")
		}
		e.MustUnlock(l)
	},

	// AC-41: a lease that is dropped without Unlock is kept while the process runs.
	"DroppedLeaseIsKept": func(e *Env) {
		m := e.Manager()
		e.MustLock(e.Lock(m))
		runtime.GC()
		n := m.Stats().Renewals
		e.Eventually("it is renewed", func() bool { return m.Stats().Renewals > n+2 })
		if _, err := e.Lock(e.Manager()).TryLock(bg); !errors.Is(err, holdfast.ErrNotAcquired) {
			e.Errorf("TryLock: %v", err)
		}
	},

	// AC-40, N5: renewals race Unlock, and nobody is told of a loss.
	"UnlockRacingRenewal": func(e *Env) {
		m := e.Manager()
		var wg sync.WaitGroup
		for i := range 60 {
			l := e.kind.Lock(m, fmt.Sprint(e.Key, i))
			wg.Go(func() {
				for range 2 {
					got := e.MustLock(l)
					// A third of the lease is when the renewal is due: from before to after it.
					time.Sleep(lease/3 - 2*time.Millisecond + time.Duration(i)*70*time.Microsecond)
					if err := got.Unlock(bg); err != nil {
						e.Errorf("%d: %v", i, err)
					}
				}
			})
		}
		wg.Wait()
		if s := m.Stats(); s.Renewals == 0 {
			e.Error("no renewal was provoked")
		}
		e.Clean(m)
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

	// Each caller of a process gets a token of its own, whoever passed it the lock.
	"FencingTokensGrowByHandoff": func(e *Env) {
		m := e.Manager()
		l := e.Lock(m, holdfast.WithFencing())
		first := e.MustLock(l)
		const n = 50
		tokens := make(chan uint64, n)
		for range n {
			go func() {
				got := e.MustLock(l)
				tokens <- got.Token()
				e.MustUnlock(got)
			}()
		}
		e.Parked(m, n)
		last := first.Token()
		e.MustUnlock(first)
		for range n {
			token := <-tokens
			if token <= last {
				e.Errorf("token %d after %d", token, last)
			}
			last = token
		}
	},
}
