package engine_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/locktest"
	"github.com/holdfast-go/holdfast/internal/redistest"
	"github.com/holdfast-go/holdfast/internal/seam"
)

// The patience of a place in the queue ends, and before the scheduler comes to say so the
// lock has been granted: the claim is a hold now, with a deadline of its own.
func TestExpire_OfAPlaceWhoseLockWasGranted(t *testing.T) {
	t.Parallel()
	m := locktest.ManagerAsIs(t, redistest.Start(t).Client(t))
	lease := locktest.Got(t, m.FairMutex("a").Lock, t.Context())
	inside(lease).Expire()
	redistest.Check(t, lease.Err())
	redistest.Check(t, locktest.Unlock(lease))
}

// listening is told when a channel is heard.
type listening chan struct{}

func (l listening) Heard(string) {}
func (l listening) Subscribed()  { l <- struct{}{} }
func (l listening) Relied() bool { return false }
func (l listening) Denied()      {}
func (l listening) Unproven()    {}

// Redis keeps a queue for half a day at least. However seldom a waiter wants to ask, it asks far more
// often than that.
func TestExpire_OfTheQueueIsOutrun(t *testing.T) {
	redistest.InWorlds(t, func(t *testing.T) {
		m := locktest.ManagerAsIs(t, redistest.Start(t).Client(t), holdfast.WithPollInterval(time.Hour), holdfast.WithFairPatience(time.Hour))
		inbox := make(listening, 1)
		seam.Engine(m).HearInbox(inbox)
		<-inbox
		for _, ttl := range []time.Duration{-1, time.Hour} {
			for range 100 { // some of it is by chance
				if d := seam.Engine(m).PollAfter(ttl); d > 150*time.Second {
					t.Fatalf("asks again after %v, behind a TTL of %v", d, ttl)
				}
			}
		}
	})
}

// The parts of a lease reach their limits at the same moment, before the lease hears of the
// first one's. Unlock gives all of them back.
func TestExpire_OfAllPartsAtOnce(t *testing.T) {
	redistest.OnServer(t, func(t *testing.T, srv *redistest.Server) {
		m := locktest.ManagerAsIs(t, srv.Client(t), holdfast.WithLease(time.Hour), holdfast.WithMaxHold(time.Hour))
		l, err := holdfast.NewMulti(m.Mutex("a"), m.Mutex("b"), m.Mutex("c"))
		redistest.Must(t, err)
		lease := locktest.Got(t, l.Lock, t.Context())
		var announce []func()
		for _, name := range []string{"a", "b", "c"} {
			x := seam.Engine(m).Inside(name)
			x.Lock()
			announce = append(announce, x.ReachLimitLocked())
			x.Unlock()
		}
		for _, tell := range announce {
			tell()
		}
		if err := locktest.Unlock(lease); !errors.Is(err, holdfast.ErrMaxHold) || err.Error() != `holdfast: maximum hold time reached: "a"` {
			t.Error(err)
		}
		redistest.Eventually(t, locktest.Patience, "all are free", func() bool { return len(srv.Keys()) == 0 })
	})
}

// The time of the caller before ends at the moment at which the lock is passed on: that of the
// next one has just begun.
func TestExpire_OfThePreviousCallersTime(t *testing.T) {
	redistest.InWorlds(t, func(t *testing.T) {
		m := locktest.ManagerAsIs(t, redistest.Start(t).Client(t), holdfast.WithMaxHold(time.Hour), holdfast.WithLease(time.Hour), holdfast.WithHandoffSlice(time.Hour))
		first := locktest.Got(t, m.Mutex("a").Lock, t.Context())
		next := m.Mutex("a").LockAsync(t.Context())
		redistest.Must(t, locktest.Unlock(first))
		r := <-next
		if r.Err != nil || !inside(r.Lease).IsHold(inside(first)) {
			t.Fatalf("%v, not passed on", r.Err)
		}
		inside(first).ReachLimit()
		redistest.Check(t, locktest.Unlock(r.Lease))
	})
}

// A renewal that was due when the write side was unlocked says nothing about the read side.
func TestExpire_RenewalBesideADowngrade(t *testing.T) {
	redistest.InWorlds(t, func(t *testing.T) {
		m, p, _ := via(t)
		l := m.RWMutex("a")
		write := locktest.Got(t, l.Lock, t.Context())
		read := locktest.Got(t, l.RLock, write.Context(t.Context()))
		gate := p.HoldRequest(redistest.Containing("holdfast_tombstones:{a}"))
		unlocked := redistest.Begin(func() error { return locktest.Unlock(write) })
		gate.Wait(t)
		p.Record()
		x := inside(write)
		x.Renew() // what the scheduler collected before
		x.Renew()
		x.Check()                                              // as ForceUnlock does
		if _, err := m.Inspect(t.Context(), "a"); err != nil { // answered after it, were it sent
			t.Fatal(err)
		}
		redistest.Want(t, p.Count(isScript), 1, "%d commands")
		gate.Release()
		redistest.Check(t, <-unlocked)
		redistest.Check(t, locktest.Unlock(read))
	})
}

// One of several locks ends while the next is waited for, and then the caller's context, before Lock
// has noticed: its error has the caller's cause.
func TestExpire_OfAPartAndOfTheCallersTime(t *testing.T) {
	redistest.OnServer(t, func(t *testing.T, srv *redistest.Server) {
		m := locktest.ManagerAsIs(t, srv.Client(t), holdfast.WithMaxHold(time.Hour))
		srv.Admin().HSet(t.Context(), "b", "00000000-0000-4000-8000-000000000000:1", 1)
		l, err := holdfast.NewMulti(m.Mutex("a"), m.Mutex("b"))
		redistest.Must(t, err)
		caller, end := context.WithCancelCause(t.Context())
		mine := errors.New("the caller's cause")
		failed := redistest.Begin(func() error { _, err := l.Lock(caller); return err })
		redistest.Eventually(t, locktest.Patience, "the second is waited for", func() bool {
			return srv.Admin().Exists(t.Context(), "redisson_lock_queue:{b}").Val() == 1
		})
		first, second := seam.Engine(m).Inside("a"), seam.Engine(m).Inside("b")
		second.Lock()
		first.Lock()
		announce := first.ReachLimitLocked()
		first.Unlock()
		announce()
		end(mine)
		second.Unlock()
		if err := <-failed; !errors.Is(err, holdfast.ErrNotAcquired) || !errors.Is(err, mine) {
			t.Error(err)
		}
	})
}

// This process stood still until a lease was over, and its timers have not run yet. A TryLock is not
// refused because of that lease.
func TestExpire_IsInNobodysWay(t *testing.T) {
	redistest.OnServer(t, func(t *testing.T, srv *redistest.Server) {
		m := locktest.ManagerAsIs(t, srv.Client(t), holdfast.WithLease(time.Hour))
		held := locktest.Got(t, m.Mutex("a").Lock, t.Context())
		inside(held).SetEnd(time.Now())
		srv.Admin().Del(t.Context(), "a") // as its TTL would have
		tried := locktest.Calls(m.Mutex("a").TryLock, t.Context())
		redistest.Eventually(t, locktest.Patience, "it waits or is refused", func() bool { return m.Stats().Waiting == 1 || len(tried) == 1 })
		inside(held).Expire() // the timers run
		locktest.MustUnlock(t, locktest.Granted(t, tried))
	})
}

// The timer fires while a caller that asks stops it: to ask again would be one request too many, and in
// Redisson's turn its end.
func TestEntry_TimerThatWasStoppedAsItFired(t *testing.T) {
	m, p, _ := via(t)
	gate := p.HoldReply(redistest.Containing("holdfast_tombstones:{a}"))
	got := m.Mutex("a").LockAsync(t.Context())
	gate.Wait(t)
	ask := seam.Engine(m).Inside("a").WakeUp()
	if polls := m.Stats().Polls; polls != 0 || ask {
		t.Errorf("%d polls; to ask again: %v", polls, ask)
	}
	gate.Release()
	if r := <-got; r.Err != nil {
		t.Error(r.Err)
	}
}
