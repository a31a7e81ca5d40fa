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
		if e.kind.Virtual && least < lease/3 {
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
		redistest.Want(e, l.Valid(), false, "valid after loss")
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
		redistest.Want(e, other.Valid(), true, "the other holder was disturbed")
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

	// F3
	"RestartWithDataIsNone": func(e *Env) {
		e.Server(redistest.WithAOF())
		m := e.Manager(holdfast.WithLease(6 * time.Second))
		l := e.MustLock(e.Lock(m))
		e.srv.Restart()
		e.Renews(m, 1)
		redistest.Check(e, l.Err())
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
		e.Renews(m, 1)
		redistest.Check(e, l.Err())
		e.MustUnlock(l)
	},

	// AC-34, N1: frozen for longer. Told by the deadline, which is before the server can
	// give the lock to another caller.
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

	// A renewal that Redis executes after the deadline, before the TTL has ended, keeps a lock that is lost for no longer
	// than it would have been.
	"LateRenewalDoesNotKeepALostLock": func(e *Env) {
		const long = 10 * time.Second // of whose TTL the last fifth of a second is not trusted
		for _, answered := range []bool{true, false} {
			m, p := e.Via(holdfast.WithLease(long))
			gate := p.HoldRequest(renewOf(e.Key))
			l := e.MustLock(e.Lock(m))
			got := e.Locking(e.Lock(e.Manager()))
			<-l.Done()
			lost := time.Now()
			if !answered {
				p.Cut()
			}
			gate.Release()
			next := <-got
			redistest.WantMost(e, time.Since(lost), long/2, "another owner has waited for %v")
			e.WantLost(l, holdfast.LostDeadline)
			e.WantErr(l.Unlock(bg), holdfast.ErrLeaseLost)
			e.MustUnlock(next)
			e.Clean(m)
		}
	},

	// Nor does an Extend that Redis has executed and not answered, of a lease that ends without Unlock.
	"ExtendWithoutAnswerDoesNotKeepALostLock": func(e *Env) {
		m, p := e.Via(holdfast.WithFixedLease(lease))
		l := e.MustLock(e.Lock(m))
		got := e.Locking(e.Lock(e.Manager()))
		gate := p.HoldReply(extendOf(e.Key))
		ctx, leave := context.WithCancel(bg)
		go func() { gate.Wait(e); leave() }()
		e.WantErr(l.Extend(ctx, time.Hour), holdfast.ErrUnavailable)
		p.Cut()
		e.WantLost(l, holdfast.LostDeadline)
		e.MustUnlock(e.Soon("another owner", got))
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
		e.Renews(m, 1)
		redistest.Check(e, l.Err())
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
		redistest.Want(e, s.Held, n, "%d held")
	},

	// AC-43: the context of the acquisition does not own the lease.
	"ContextOfLockDoesNotOwnTheLease": func(e *Env) {
		m := e.Manager()
		ctx, cancel := context.WithCancel(bg)
		l, err := e.Lock(m).Lock(ctx)
		redistest.Must(e, err)
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
		redistest.Want(e, l.Valid(), true, "the lease ended with a context derived from it")
		e.MustUnlock(l)
	},

	// AC-41: a lease that is dropped without Unlock is kept while the process runs.
	"DroppedLeaseIsKept": func(e *Env) {
		m := e.Manager()
		e.MustLock(e.Lock(m))
		runtime.GC()
		e.Renews(m, 3)
		if _, err := e.TryLock(e.Lock(e.Manager())); !errors.Is(err, holdfast.ErrNotAcquired) {
			e.Errorf("TryLock: %v", err)
		}
	},

	// AC-40, N5: renewals race Unlock, and no loss is reported.
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
					if err := got.Unlock(bg); err != nil && !e.excused(err) {
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
}
