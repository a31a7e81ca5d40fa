package holdfasttest_test

import (
	"context"
	"errors"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/holdfasttest"
	"github.com/holdfast-go/holdfast/internal/locktest"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

// wantLost checks that a lease has been lost, and why.
func wantLost(t *testing.T, lease *holdfast.Lease, reason holdfast.LostReason) {
	t.Helper()
	var lost *holdfast.LostError
	if err := lease.Err(); !errors.As(err, &lost) || lost.Reason != reason {
		t.Errorf("the lease has ended with %v, want the reason %s", err, reason)
	}
}

// When Lose returns, the leases have ended, of all kinds and of all holders, and with them their contexts and what derives
// from these.
func TestLose_EndsLeasesBeforeItReturns(t *testing.T) {
	inBothWorlds(t, func(t *testing.T) {
		s := holdfasttest.NewServer(t)
		m, other := s.NewManager(), s.NewManager()
		both, err := holdfast.NewMulti(m.Mutex("one"), m.Mutex("two"))
		redistest.Must(t, err)
		for name, locks := range map[string][]holdfast.Locker{
			"mutex":   {m.Mutex("mutex")},
			"fair":    {m.FairMutex("fair")},
			"write":   {m.RWMutex("write")},
			"readers": {m.RWMutex("readers").RLocker(), m.RWMutex("readers").RLocker(), other.RWMutex("readers").RLocker()},
			"fixed":   {m.Mutex("fixed", holdfast.WithFixedLease(time.Hour))},
			"two":     {both},
		} {
			var leases []*holdfast.Lease
			var works []context.Context
			for _, l := range locks {
				lease := s.Hold(l)
				work, cancel := context.WithCancel(lease.Context(t.Context()))
				defer cancel()
				leases, works = append(leases, lease), append(works, work)
			}
			s.Lose(name)
			for i, lease := range leases {
				wantLost(t, lease, holdfast.LostDeleted)
				if works[i].Err() == nil || !errors.Is(context.Cause(works[i]), holdfast.ErrLeaseLost) {
					t.Errorf("%s: work goes on: %v", name, context.Cause(works[i]))
				}
				if err := lease.Unlock(t.Context()); !errors.Is(err, holdfast.ErrLeaseLost) {
					t.Errorf("%s: Unlock returns %v", name, err)
				}
			}
		}
	})
}

// A lock that Lose takes away goes to the caller that waits for it, in the Manager of the holder too, and that caller keeps it.
func TestLose_GivesTheLockToTheNext(t *testing.T) {
	inBothWorlds(t, func(t *testing.T) {
		s := holdfasttest.NewServer(t)
		m := s.NewManager()
		for _, next := range []*holdfast.Manager{m, s.NewManager()} {
			lease := s.Hold(m.FairMutex("x")) // in its queue in Redis waiters of its own process stand as well
			waiting := next.FairMutex("x").LockAsync(t.Context())
			s.AwaitWaiters("x", 1)
			s.Lose("x")
			wantLost(t, lease, holdfast.LostDeleted)
			redistest.Check(t, locktest.Granted(t, waiting).Unlock(t.Context()))
		}
	})
}

// A Manager that the test has made itself learns of a loss at its next renewal.
func TestLose_OfManagersOfTheCaller(t *testing.T) {
	inBothWorlds(t, func(t *testing.T) {
		s := holdfasttest.NewServer(t)
		lease := s.Hold(locktest.ManagerAsIs(t, s.Client(), holdfast.WithLease(3*time.Second)).Mutex("x"))
		s.Lose("x")
		<-lease.Done()
		wantLost(t, lease, holdfast.LostDeleted)
	})
}

func TestLose_FailsWhereNothingIsHeld(t *testing.T) {
	redistest.WantFailure(t, `holdfasttest: Lose: no Manager holds "job"; held are ["jobs"]`, func(tb testing.TB) {
		s := holdfasttest.NewServer(tb)
		s.Hold(s.NewManager().Mutex("jobs"))
		s.Lose("job")
	})
	redistest.WantFailure(t, "holdfasttest: Lose: holdfast: redis unavailable", func(tb testing.TB) {
		s := holdfasttest.NewServer(tb)
		s.Hold(s.NewManager().Mutex("job"))
		s.Down()
		s.Lose("job")
	})
}

// A lease lives through an outage that is shorter than it, and ends at its deadline in one that is not.
func TestDown_LeasesOutliveShortOutages(t *testing.T) {
	for name, away := range map[string]func(*holdfasttest.Server){"down": (*holdfasttest.Server).Down, "hanging": (*holdfasttest.Server).Hang} {
		t.Run(name, func(t *testing.T) {
			inBothWorlds(t, func(t *testing.T) {
				s := holdfasttest.NewServer(t)
				m := s.NewManager(holdfast.WithLease(2 * time.Second))
				lease := s.Hold(m.Mutex("x"))
				before := lease.Deadline()
				away(s)
				select {
				case <-time.After(800 * time.Millisecond): // a renewal has failed
				case <-lease.Done():
					t.Fatal("lost in a short outage")
				}
				if lease.Deadline() != before {
					t.Error("renewed while Redis was away")
				}
				s.Up()
				for lease.Deadline() == before && lease.Err() == nil {
					time.Sleep(time.Millisecond) // until it is renewed
				}
				if !lease.Valid() {
					t.Fatal("lost although Redis was back in time")
				}
				away(s)
				<-lease.Done()
				wantLost(t, lease, holdfast.LostDeadline)
				s.Up()
				again := s.Hold(m.Mutex("x"))
				redistest.Check(t, again.Unlock(t.Context()))
			})
		})
	}
}

// Callers are told of an outage, not of another holder; one that waits is served when Redis is back.
func TestDown_CallersAreTold(t *testing.T) {
	inBothWorlds(t, func(t *testing.T) {
		s := holdfasttest.NewServer(t)
		m := s.NewManager()
		s.Down()
		_, err := m.Mutex("x").TryLock(t.Context())
		if !errors.Is(err, holdfast.ErrUnavailable) || !errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("TryLock: %v", err)
		}
		waiting := m.Mutex("x").LockAsync(t.Context())
		select {
		case got := <-waiting:
			t.Fatalf("Lock in an outage: %v", got.Err)
		case <-time.After(100 * time.Millisecond):
		}
		s.Up()
		locktest.Granted(t, waiting)
		_, err = s.NewManager().Mutex("x").TryLock(t.Context())
		locktest.WantErr(t, err, holdfast.ErrNotAcquired, nil)
	})
}

// A restart loses locks: others can take them at once, and the holder learns of it at its next renewal.
func TestRestart_LosesData(t *testing.T) {
	inBothWorlds(t, func(t *testing.T) {
		s := holdfasttest.NewServer(t)
		m, other := s.NewManager(holdfast.WithLease(6*time.Second)), s.NewManager() // its renewal comes after the other's Lock
		lease := s.Hold(m.Mutex("x"))
		s.Restart()
		s.Hold(other.Mutex("x"))
		<-lease.Done()
		wantLost(t, lease, holdfast.LostStolen)
	})
}

// Restart leaves Redis as reachable as it was.
func TestRestart_DoesNotEndAnOutage(t *testing.T) {
	inBothWorlds(t, func(t *testing.T) {
		s := holdfasttest.NewServer(t)
		m := s.NewManager()
		s.Down()
		s.Restart()
		_, err := m.Mutex("x").TryLock(t.Context())
		locktest.WantErr(t, err, syscall.ECONNREFUSED, nil)
	})
}

// While Redis is away, go-redis connects again for messages with a mutex held that the next PING needs. A pause in between
// would stop a bubble's clock forever.
func TestDown_ABubblesClockGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := holdfasttest.NewServer(t)
		lease := s.Hold(s.NewManager().Mutex("job"))
		waiting := s.NewManager(holdfast.WithPollInterval(10 * time.Millisecond)).Mutex("job").LockAsync(t.Context())
		for i := range 200 {
			s.Down()
			time.Sleep(time.Duration(i) * time.Millisecond)
			s.Up()
			time.Sleep(100 * time.Millisecond)
		}
		redistest.Check(t, lease.Unlock(t.Context()))
		locktest.Granted(t, waiting)
	})
}
