package faults

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/locktest"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

// A request that puts a waiter into the queue arrives when a copy of it has long done so, and the waiter has
// the lock: it makes no place, which no caller would ever give up.
func TestFair_LateRequestForAPlace(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	const queue = "redisson_lock_queue:{a}"
	holder := locktest.ManagerOn(t, srv)
	m, p := locktest.ManagerThatHangs(t, srv, append(locktest.Unasked, holdfast.WithLease(time.Hour))...)
	held := locktest.MustLock(t, holder.FairMutex("a"))
	first := locktest.Waits(t, m.FairMutex("a"))
	locktest.Queued(t, srv, queue, 1)
	gate := p.HoldFirstRequest(locktest.JoinOn("a"))
	second := locktest.Waits(t, m.FairMutex("a"))
	gate.Wait(t)
	locktest.Queued(t, srv, queue, 2) // by the copy
	locktest.MustUnlock(t, held)
	locktest.MustUnlock(t, first())
	lease := second()
	redistest.Eventually(t, locktest.Patience, "it is renewed", func() bool { return srv.Admin().PTTL(t.Context(), "a").Val() > time.Minute })
	mon := srv.Monitor(t)
	gate.Release()
	mon.Wait(t, `"hlen" "a"`, locktest.Patience)
	locktest.Queued(t, srv, queue, 0)
	locktest.MustUnlock(t, lease)
}

// A renewal over a dead connection is sent again over another one, before the schedule would do it. The end of the first one is no failure.
func TestRenewal_OverADeadConnection(t *testing.T) {
	redistest.OnServerInFakeTime(t, func(t *testing.T, srv *redistest.Server) {
		m, p := locktest.ManagerThatHangs(t, srv, holdfast.WithLease(6*time.Second))
		lease := locktest.MustLock(t, m.Mutex("a"))
		gate := p.HoldFirstRequest(locktest.ScriptOn("a", "renew"))
		gate.Wait(t)
		sent := time.Now()
		redistest.Eventually(t, locktest.Patience, "it is renewed", func() bool { return m.Stats().Renewals > 0 })
		redistest.WantMost(t, time.Since(sent), 500*time.Millisecond, "renewed after %v: when it is overdue")
		p.Cut()
		locktest.MustUnlock(t, lease)
		redistest.Eventually(t, locktest.Patience, "all requests have ended", func() bool { return locktest.Pending(m) == 0 })
		redistest.Want(t, m.Stats().RenewalFailures, 0, "%d failures")
	})
}

// A write grant shows that the read holds of the process were lost: their leases end with it.
func TestRWMutex_WriteAfterALossThatNobodyNoticed(t *testing.T) {
	redistest.OnServer(t, func(t *testing.T, srv *redistest.Server) {
		m := locktest.ManagerOn(t, srv, holdfast.WithLease(time.Hour))
		reads := []*holdfast.Lease{locktest.MustLock(t, m.RWMutex("a").RLocker()), locktest.MustLock(t, m.RWMutex("a", holdfast.WithFixedLease(time.Hour)).RLocker())}
		srv.Admin().FlushAll(t.Context())
		write := locktest.MustLock(t, m.RWMutex("a"))
		for _, read := range reads {
			redistest.Want(t, read.Valid(), false, "a read lease is valid beside a write lease")
			locktest.WantErr(t, read.Unlock(t.Context()), holdfast.ErrLeaseLost, nil)
		}
		locktest.MustUnlock(t, write)
	})
}

// A release is answered by a copy that finds nothing left to do, while the reply of the first request, which has run and alone tells the
// next caller of the process of its grant, is lost or late: that is a success. The next caller asks.
func TestUnlock_GrantInALostAnswer(t *testing.T) {
	for _, late := range []bool{false, true} {
		t.Run(fmt.Sprint(late), func(t *testing.T) {
			redistest.OnServer(t, func(t *testing.T, srv *redistest.Server) {
				m, p := locktest.ManagerVia(t, srv, append(locktest.Unasked, holdfast.WithLease(time.Hour))...)
				held := locktest.MustLock(t, m.FairMutex("a"))
				got := locktest.Waits(t, m.FairMutex("a"))
				redistest.Eventually(t, locktest.Patience, "the second has asked again, since it hears", func() bool { return locktest.Hears(t, srv, m) })
				arrives := func() {}
				if late {
					arrives = p.HoldFirstReply(locktest.ReleaseOn("a")).Release
				} else {
					p.LoseReply(locktest.ReleaseOn("a"), 1)
				}
				locktest.MustUnlock(t, held)
				arrives()
				locktest.MustUnlock(t, got())
			})
		})
	}
}

// A TryLock of a fair lock waits for what is being given up when it comes, and not for what callers that come and
// go give up after that.
func TestFair_TryLockBesideThoseWhoGiveUp(t *testing.T) {
	t.Parallel()
	for name, trouble := range map[string]func(*redistest.Proxy){
		"silent":  func(p *redistest.Proxy) { p.BlackHole(true) },
		"distant": func(p *redistest.Proxy) { p.Delay(10*time.Millisecond, 0) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m, p := locktest.ManagerVia(t, redistest.Start(t))
			l := m.FairMutex("a")
			locktest.MustUnlock(t, locktest.MustLock(t, l))
			ctx, stop := context.WithCancel(t.Context())
			var callers sync.WaitGroup
			defer func() { stop(); p.Heal(); p.Cut(); callers.Wait() }()
			trouble(p)
			for range 4 {
				callers.Go(func() {
					for ctx.Err() == nil {
						short, cancel := context.WithTimeout(ctx, 8*time.Millisecond)
						if lease, err := l.Lock(short); err == nil {
							_ = lease.Unlock(ctx)
						}
						cancel()
					}
				})
			}
			redistest.Eventually(t, locktest.Patience, "requests are given up", func() bool { return m.Stats().Commands > 8 })
			redistest.Next(t, locktest.Calls(l.TryLock, ctx), "TryLock does not return")
		})
	}
}

// What was said to an earlier caller does not say why the next one got nothing.
func TestLock_OldRefusalExplainsNoSilence(t *testing.T) {
	redistest.OnServer(t, func(t *testing.T, srv *redistest.Server) {
		m, p := locktest.ManagerVia(t, srv)
		held := locktest.MustLock(t, locktest.ManagerOn(t, srv).Mutex("a"))
		ctx, leave := context.WithCancel(t.Context())
		refused := locktest.Calls(m.Mutex("a").Lock, ctx)
		locktest.Queued(t, srv, "redisson_lock_queue:{a}", 1)
		redistest.Eventually(t, locktest.Patience, "it has its answers", func() bool { return locktest.Hears(t, srv, m) })
		p.BlackHole(true)
		leave()
		locktest.WantErr(t, (<-refused).Err, holdfast.ErrNotAcquired, nil)
		locktest.MustUnlock(t, held)
		short, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		defer cancel()
		_, err := m.Mutex("a").Lock(short)
		locktest.WantErr(t, err, holdfast.ErrUnavailable, holdfast.ErrNotAcquired)
		p.Heal()
		p.Cut()
	})
}

// That Redis has not been asked while a reader is inside is no silence.
func TestLock_ShortWaitBesideAReaderIsNoSilence(t *testing.T) {
	redistest.InWorlds(t, func(t *testing.T) {
		m, p := locktest.ManagerVia(t, redistest.Start(t))
		var err error
		for try := range 5 { // a machine that stands still makes a silence of it
			l := m.RWMutex(fmt.Sprint(try), holdfast.WithFixedLease(time.Minute)) // its readers share no hold
			p.Delay(0, 0)
			inside := locktest.MustLock(t, l.RLocker())
			time.Sleep(100 * time.Millisecond) // of the lease: more than what would be a silence
			p.Delay(20*time.Millisecond, 0)
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Millisecond)
			_, err = l.RLock(ctx)
			cancel()
			locktest.MustUnlock(t, inside)
			if errors.Is(err, holdfast.ErrNotAcquired) {
				return
			}
		}
		t.Error(err)
	})
}

// What one caller was told of a silence is not what the next one is told, when it is over.
func TestLock_OldTroubleExplainsNothing(t *testing.T) {
	redistest.OnServer(t, func(t *testing.T, srv *redistest.Server) {
		m, p := locktest.ManagerVia(t, srv)
		inside := locktest.MustLock(t, m.RWMutex("a", holdfast.WithLease(time.Hour)).RLocker()) // so that the lock stays known
		other := m.RWMutex("a", holdfast.WithMaxHold(time.Hour))
		p.BlackHole(true)
		_, err := other.TryRLock(t.Context())
		locktest.WantErr(t, err, holdfast.ErrUnavailable, holdfast.ErrNotAcquired)
		p.Heal()
		p.Cut()
		redistest.Eventually(t, locktest.Patience, "all that was asked has ended", func() bool { return locktest.Pending(m) == 0 })
		time.Sleep(100 * time.Millisecond) // in which nothing is asked: no silence
		for asked := (time.Time{}); !errors.Is(err, holdfast.ErrNotAcquired); {
			if !asked.IsZero() && time.Since(asked) < 50*time.Millisecond { // else a machine that stood still has made a silence of it
				t.Fatal(err)
			}
			gate := p.HoldReply(locktest.ScriptOn("a", "rw_acquire"))
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Millisecond)
			asked = time.Now()
			_, err = other.RLock(ctx)
			cancel()
			gate.Release()
		}
		locktest.MustUnlock(t, inside)
	})
}
