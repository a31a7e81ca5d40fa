package topology

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/locktest"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

// AC-84. The master is killed while a lock is held, in every other round before the
// replicas have heard of it. The holder either keeps the lock or learns of the loss; another process
// gets it or not accordingly. What Redis loses cannot be asserted, so overlaps are
// reported.
func TestSentinel_KilledMaster(t *testing.T) {
	scenario(t, sentinelKill, false, func(t *testing.T, r *row) {
		s := redistest.StartSentinel(t, 2)
		holders, others := manager(t, s.Client(t), r.options()...), manager(t, s.Client(t), r.options()...)
		for round := range r.rounds() {
			lock := fmt.Sprint(name, ":", round)
			old := s.Master()
			var replicas []*redistest.Server
			for _, n := range s.Nodes() {
				if n != old {
					replicas = append(replicas, n)
				}
			}
			unheard := round%2 == 1
			if unheard {
				isolate(t, old, replicas...)
			}
			held := r.hold(t, holders.Mutex(lock), unheard)
			if !unheard {
				acknowledged(t, old, 2)
			}
			old.Kill()
			killed := time.Now()
			r.faults++
			for _, n := range replicas {
				n.Resume()
			}

			// The service is back when another lock can be had.
			s.AwaitNewMaster(old)
			elected := time.Now()
			locktest.MustUnlock(t, locktest.MustLock(t, others.Mutex(lock+":probe")))
			r.behind = max(r.behind, time.Since(elected))
			r.unavailable = max(r.unavailable, time.Since(killed))

			if held == nil {
				locktest.MustUnlock(t, locktest.MustLock(t, others.Mutex(lock))) // nothing was left behind
			} else if !r.judge(t, held, others.Mutex(lock)) && !unheard && time.Since(killed) < lease/2 {
				t.Errorf("round %d: both replicas had the lock, and it was lost", round) // in time for a renewal
			}
			old.Restart()
			s.AwaitHealthy()
		}
	})
}

// hold takes the lock. If no replica hears of that and one has to, it must be refused:
// then it returns nil.
func (r *row) hold(t *testing.T, l holdfast.Locker, unheard bool) *holdfast.Lease {
	t.Helper()
	if !unheard || r.replicas == 0 {
		return locktest.MustLock(t, l)
	}
	_, err := l.TryLock(within(t))
	if !errors.Is(err, holdfast.ErrUnavailable) || errors.Is(err, holdfast.ErrNotAcquired) {
		t.Fatalf("TryLock: %v, want ErrUnavailable", err)
	}
	r.refused++
	return nil
}

// isolate keeps replicas from hearing anything more of their master: they stand still, so
// its links to them, once cut, stay cut.
func isolate(t *testing.T, master *redistest.Server, replicas ...*redistest.Server) {
	t.Helper()
	for _, n := range replicas {
		n.Pause()
	}
	redistest.Must(t, master.Admin().ClientKillByFilter(context.Background(), "TYPE", "replica").Err())
}

// A fail-over on request, under load, again and again: callers see no error.
func TestSentinel_FailoverUnderLoad(t *testing.T) {
	scenario(t, sentinelRequest, false, func(t *testing.T, r *row) { // the old master is told late
		s := redistest.StartSentinel(t, 1)
		ms := []*holdfast.Manager{manager(t, s.Client(t), r.options()...), manager(t, s.Client(t), r.options()...)}
		l := startLoad(name, ms, 4)
		l.goesOn(t, 1)
		for range r.rounds() {
			r.faults++
			s.Failover()
			s.AwaitHealthy()
			l.goesOn(t, 20)
		}
		l.finish(t, r)
		for _, m := range ms {
			locktest.MustUnlock(t, locktest.MustLock(t, m.Mutex(name)))
		}
	})
}

// A waiter that is parked when the master is replaced is woken by the new one, or asks
// by itself.
func TestSentinel_WaiterSurvivesTheFailover(t *testing.T) {
	t.Parallel()
	s := redistest.StartSentinel(t, 1)
	holders, waiters := manager(t, s.Client(t)), manager(t, s.Client(t))
	held := locktest.MustLock(t, holders.Mutex(name))
	acknowledged(t, s.Master(), 1)
	got := locktest.Waits(t, waiters.Mutex(name))
	redistest.Eventually(t, patience, "the waiter is subscribed", func() bool { return waiters.Stats().Subscriptions == 1 })
	s.Failover()
	if err := held.Unlock(within(t)); err != nil && !errors.Is(err, holdfast.ErrUnavailable) {
		t.Fatalf("Unlock: %v", err)
	}
	if err := got().Unlock(within(t)); err != nil && !errors.Is(err, holdfast.ErrLeaseLost) {
		t.Errorf("Unlock: %v", err) // lost: the old master has granted it before it knew that it is a replica
	}
}
