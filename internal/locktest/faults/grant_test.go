package faults

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/locktest"
	"github.com/holdfast-go/holdfast/internal/locktest/several"
	"github.com/holdfast-go/holdfast/internal/redistest"
	"github.com/holdfast-go/holdfast/internal/validity"
)

// Bugs that were found once, each where two kinds or two features meet.

// A request that was sent for a TryLock is taken over by the caller that waits behind it. It asked
// for no place in the queue, so the waiter asks for one when it has been refused.
func TestLock_TakesOverTheRequestOfATryLock(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	holder := locktest.ManagerOn(t, srv)
	m, p := locktest.ManagerVia(t, srv, holdfast.WithPollInterval(time.Hour), holdfast.WithFairPatience(time.Hour))
	held, other := locktest.MustLock(t, holder.Mutex("a")), locktest.MustLock(t, holder.Mutex("other"))
	later := m.Mutex("other").LockAsync(t.Context()) // so that its inbox is heard
	locktest.InboxHeard(t, srv)
	gate := p.HoldReply(locktest.ScriptOn("a"))
	ctx, cancel := context.WithCancel(t.Context())
	tried := redistest.Begin(func() error { _, err := m.Mutex("a").TryLock(ctx); return err })
	gate.Wait(t)
	got := m.Mutex("a").LockAsync(t.Context())
	cancel()
	locktest.WantErr(t, <-tried, context.Canceled, nil)
	gate.Release()
	redistest.Eventually(t, locktest.Patience, "it stands in the queue", func() bool {
		return srv.Admin().LLen(t.Context(), "redisson_lock_queue:{a}").Val() == 1
	})
	locktest.MustUnlock(t, held)
	locktest.MustUnlock(t, (<-got).Lease)
	locktest.MustUnlock(t, other)
	locktest.MustUnlock(t, (<-later).Lease)
}

// A caller that waits for one of a Multi's locks does not get the error of another of
// them.
func TestMulti_FailsNobodyElse(t *testing.T) {
	redistest.OnServer(t, func(t *testing.T, srv *redistest.Server) {
		m, p := locktest.ManagerVia(t, srv)
		srv.Admin().Set(t.Context(), "b", "no lock", 0)
		gate := p.HoldReply(locktest.ScriptOn("a", "multi_acquire"))
		tried := make(chan error, 1)
		l := several.Multi(t, m.Mutex("a"), m.Mutex("b"))
		go func() {
			_, err := l.TryLock(t.Context())
			tried <- err
		}()
		gate.Wait(t)
		got := m.Mutex("a").LockAsync(t.Context())
		gate.Release()
		locktest.WantErr(t, <-tried, holdfast.ErrWrongKind, nil)
		locktest.MustUnlock(t, locktest.Granted(t, got))
	})
}

// A waiter keeps its place, and before it learns of that it is granted the lock: what is
// scheduled then is the hold, which is renewed, or if it is fixed ends.
func TestFair_PlaceIsKeptBeforeTheGrant(t *testing.T) {
	redistest.InWorlds(t, func(t *testing.T) {
		for _, fixed := range []bool{false, true} {
			srv := redistest.Start(t)
			holder := locktest.ManagerOn(t, srv)
			m, p := locktest.ManagerVia(t, srv, locktest.Unasked...)
			l := m.FairMutex("a")
			if fixed {
				l = m.FairMutex("a", holdfast.WithFixedLease(500*time.Millisecond))
			}
			held := locktest.MustLock(t, holder.FairMutex("a"))
			gate := p.HoldReply(locktest.ScriptOn("a", "keep")) // sent when its inbox begins to be heard
			got := locktest.Waits(t, l)
			gate.Wait(t)
			locktest.MustUnlock(t, held)
			lease := got()
			gate.Release()
			if fixed {
				redistest.Eventually(t, locktest.Patience, "it ends", func() bool { return lease.Err() != nil })
				continue
			}
			redistest.Eventually(t, locktest.Patience, "it is renewed", func() bool { return srv.Admin().PTTL(t.Context(), "a").Val() > 20*time.Second })
			locktest.MustUnlock(t, lease)
		}
	})
}

// Redis cannot be reached when a lease is unlocked that Extend has made long: the release goes
// on until it is confirmed, however short the lease was before.
func TestLock_ReleaseOfAnExtendedLeaseGoesOn(t *testing.T) {
	t.Parallel()
	for _, answered := range []bool{true, false} {
		t.Run(fmt.Sprintf("answered=%v", answered), func(t *testing.T) {
			t.Parallel()
			srv := redistest.Start(t)
			m, p := locktest.ManagerVia(t, srv)
			lease := locktest.MustLock(t, m.Mutex("a", holdfast.WithFixedLease(2*time.Second)))
			if !answered {
				p.LoseReply(redistest.Containing(fmt.Sprint(validity.Milliseconds(validity.TTL(time.Hour)))), 2) // Extend sends its request once more
			}
			if err := lease.Extend(t.Context(), time.Hour); (err == nil) != answered {
				t.Fatal(err)
			}
			if ttl := srv.Admin().PTTL(t.Context(), "a").Val(); ttl < time.Minute {
				t.Fatalf("the lock has %v", ttl)
			}
			p.Refuse(true)
			p.Cut()
			locktest.WantErr(t, lease.Unlock(t.Context()), holdfast.ErrUnavailable, nil)
			time.Sleep(5 * time.Second) // longer than the release of the lease before
			p.Heal()
			redistest.Eventually(t, locktest.Patience, "it is free", func() bool { return srv.Admin().Exists(t.Context(), "a").Val() == 0 })
		})
	}
}

// A grant by a process with short leases is a short one. It is asked about, or it would be
// over before its first renewal.
func TestLock_GrantedByAShorterLease(t *testing.T) {
	redistest.OnServer(t, func(t *testing.T, srv *redistest.Server) {
		a, b := locktest.ManagerOn(t, srv), locktest.ManagerOn(t, srv, locktest.Unasked...)
		held := locktest.MustLock(t, a.Mutex("a"))
		got := locktest.Waits(t, b.Mutex("a"))
		locktest.InboxHeard(t, srv)
		locktest.MustUnlock(t, held)
		locktest.MustUnlock(t, got())

		short := locktest.MustLock(t, a.Mutex("a", holdfast.WithLease(40*time.Millisecond)))
		got = locktest.Waits(t, b.Mutex("a"))
		redistest.Eventually(t, locktest.Patience, "it waits, or has it", func() bool {
			return srv.Admin().LLen(t.Context(), "redisson_lock_queue:{a}").Val() == 1 || b.Stats().Held == 1
		})
		_ = short.Unlock(t.Context()) // on a slow machine it is over already
		lease := got()
		if left := time.Until(lease.Deadline()); left < time.Second {
			t.Errorf("granted for %v of a lease of %v", left, holdfast.DefaultLease)
		}
		locktest.MustUnlock(t, lease)
	})
}

// The counter is lost while the lock is held: the process that is granted it next and has seen its
// tokens goes on above them.
func TestFencing_OfAGrantAfterTheCounterWasLost(t *testing.T) {
	redistest.OnServer(t, func(t *testing.T, srv *redistest.Server) {
		a, b := locktest.ManagerOn(t, srv, holdfast.WithFencing()), locktest.ManagerOn(t, srv, holdfast.WithFencing())
		redistest.Must(t, srv.Admin().Set(t.Context(), "redisson_lock_token:{a}", 5000, 0).Err())
		first := locktest.MustLock(t, b.Mutex("a"))
		locktest.MustUnlock(t, first)
		held := locktest.MustLock(t, a.Mutex("a"))
		got := locktest.Waits(t, b.Mutex("a"))
		locktest.Queued(t, srv, "redisson_lock_queue:{a}", 1)
		redistest.Must(t, srv.Admin().Del(t.Context(), "redisson_lock_token:{a}").Err())
		locktest.MustUnlock(t, held)
		second := got()
		if second.Token() <= first.Token() {
			t.Errorf("token %d, and then %d", first.Token(), second.Token())
		}
		locktest.MustUnlock(t, second)
	})
}

// A reader that needs a hold of its own is not refused because another reader came in.
func TestTryRLock_BesideAnotherReader(t *testing.T) {
	redistest.OnServer(t, func(t *testing.T, srv *redistest.Server) {
		m, p := locktest.ManagerVia(t, srv)
		l := m.RWMutex("a", holdfast.WithFixedLease(time.Minute))
		gate := p.HoldReply(locktest.ScriptOn("a"))
		got := locktest.Waits(t, l.RLocker())
		gate.Wait(t)
		tried := locktest.Calls(l.TryRLock, t.Context())
		redistest.Eventually(t, locktest.Patience, "both wait", func() bool { return m.Stats().Waiting == 2 })
		gate.Release()
		locktest.MustUnlock(t, locktest.Granted(t, tried))
		locktest.MustUnlock(t, got())
	})
}
