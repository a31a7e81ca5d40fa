package semaphore

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/locktest"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

// Not re-entrant: a call under the context of a lease takes permits of its own, and would wait for itself if too few are left.
func TestSemaphore_UnderItsOwnContext(t *testing.T) {
	redistest.OnServer(t, func(t *testing.T, srv *redistest.Server) {
		m := locktest.ManagerOn(t, srv)
		s := m.Semaphore(name, 4)
		one := acquire(t, s, 1)
		ctx := one.Context(t.Context())
		two, err := s.Acquire(ctx, 2)
		redistest.Must(t, err)
		wantState(t, srv, 4, 1)
		under := two.Context(ctx)
		if _, err := s.Acquire(under, 2); !errors.Is(err, holdfast.ErrWouldDeadlock) {
			t.Errorf("two of the one that is left: %v", err)
		}
		several, err := holdfast.NewMulti(s.Locker(2), m.Mutex("x"))
		redistest.Must(t, err)
		if _, err := several.Lock(under); !errors.Is(err, holdfast.ErrWouldDeadlock) {
			t.Errorf("the same with another lock: %v", err)
		}
		last, err := s.Acquire(under, 1)
		redistest.Must(t, err)
		unlock(t, last, two, one)
		wantState(t, srv, 4, 4)
	})
}

func TestSemaphore_InMultiAndDo(t *testing.T) {
	redistest.OnServer(t, func(t *testing.T, srv *redistest.Server) {
		m := locktest.ManagerOn(t, srv)
		s := m.Semaphore(name, 4)
		several, err := holdfast.NewMulti(s.Locker(3), m.Mutex("x"))
		redistest.Must(t, err)
		err = holdfast.Do(t.Context(), several, func(_ context.Context, l *holdfast.Lease) error {
			redistest.Want(t, l.Permits(), 0, "a lease of several locks has %d permits")
			wantState(t, srv, 4, 1)
			refused(t, s, 2)
			return nil
		})
		redistest.Check(t, err)
		wantState(t, srv, 4, 4)
	})
}

// WithHoldAtLeast: a permit stays taken after Unlock, so that no more than N begin in that time.
func TestSemaphore_HoldAtLeast(t *testing.T) {
	redistest.OnServer(t, func(t *testing.T, srv *redistest.Server) {
		m := locktest.ManagerOn(t, srv)
		s := m.Semaphore(name, 2, holdfast.WithHoldAtLeast(300*time.Millisecond))
		began := time.Now()
		unlock(t, acquire(t, s, 2))
		wantState(t, srv, 2, 0)
		refused(t, s, 1)
		unlock(t, acquire(t, m.Semaphore(name, 2), 2))
		if d := time.Since(began); d < 300*time.Millisecond {
			t.Errorf("it was taken for %v", d)
		}
	})
}

func TestSemaphore_Lease(t *testing.T) {
	redistest.OnServer(t, func(t *testing.T, srv *redistest.Server) {
		m := locktest.ManagerOn(t, srv)
		fixed := acquire(t, m.Semaphore(name, 2, holdfast.WithFixedLease(400*time.Millisecond)), 1)
		redistest.Must(t, fixed.Extend(t.Context(), time.Hour))
		if left := time.Until(fixed.Deadline()); left < 50*time.Minute {
			t.Errorf("%v are left", left)
		}
		if n, err := fixed.FencingToken(); err == nil || fixed.Token() != 0 {
			t.Errorf("it has a token: %v, %v", n, fixed.Token())
		}
		short := acquire(t, m.Semaphore(name, 2, holdfast.WithFixedLease(300*time.Millisecond)), 1)
		next := m.Semaphore(name, 2).AcquireAsync(t.Context(), 1)
		lost(t, short, holdfast.LostDeadline)
		unlock(t, granted(t, next), fixed)
		wantState(t, srv, 2, 2)
	})
}

// Redis forgets a semaphore that is not used, and not one that is.
func TestSemaphore_IdleTTL(t *testing.T) {
	redistest.OnServerInFakeTime(t, func(t *testing.T, srv *redistest.Server) {
		m := locktest.ManagerOn(t, srv, holdfast.WithLease(time.Second))
		l := acquire(t, m.Semaphore(name, 2, holdfast.WithIdleTTL(2*time.Second)), 1)
		time.Sleep(time.Minute) // in fake time
		if !l.Valid() {
			t.Fatal(l.Err())
		}
		wantState(t, srv, 2, 1)
		unlock(t, l)
		time.Sleep(3 * time.Second)
		redistest.Want(t, srv.Admin().Exists(t.Context(), name, held).Val(), 0, "it is still there")
		redistest.Must(t, m.Semaphore(name, 2, holdfast.WithIdleTTL(2*time.Second)).SetPermits(t.Context(), 3))
		time.Sleep(3 * time.Second)
		redistest.Want(t, srv.Admin().Exists(t.Context(), name).Val(), 0, "what SetPermits has set is still there")

		// Passed to New it bounds the leases of semaphores, and of no other kind.
		m = locktest.ManagerOn(t, srv, holdfast.WithLease(time.Second), holdfast.WithIdleTTL(2*time.Second))
		unlock(t, locktest.MustLock(t, m.Mutex("mutex", holdfast.WithLease(3*time.Second))))
		_, err := m.Semaphore(name, 2, holdfast.WithLease(3*time.Second)).TryAcquire(t.Context(), 1)
		locktest.WantErr(t, err, holdfast.ErrInvalidOption, nil)
	})
}

// What operators see and do.
func TestSemaphore_ForOperators(t *testing.T) {
	redistest.OnServer(t, func(t *testing.T, srv *redistest.Server) {
		m := locktest.ManagerOn(t, srv, holdfast.WithIdentity("uploads"))
		other := locktest.ManagerOn(t, srv)
		s := m.Semaphore(name, 5)
		two, one := acquire(t, s, 2), acquire(t, other.Semaphore(name, 5), 1)
		redistest.Eventually(t, locktest.Patience, "the process says who it is", func() bool {
			return len(srv.Admin().Keys(t.Context(), "holdfast_process:*").Val()) == 1
		})
		info, err := m.Inspect(t.Context(), name)
		if err != nil || len(info.Holders) != 3 || !info.Held || info.TTL != -1 {
			t.Fatalf("%+v, %v", info, err)
		}
		named, others := 0, ""
		for _, h := range info.Holders {
			switch {
			case len(h.Owner) != 32 || !h.Holdfast || h.TTL <= 0:
				t.Errorf("a holder is %+v", h)
			case h.Identity != nil && h.Identity.App == "uploads":
				named++
			default:
				others = h.Owner
			}
		}
		redistest.Want(t, named, 2, "%d of the permits lead to the process")
		for l := range m.Locks() {
			if l.Name != name || l.Kind != holdfast.KindSemaphore || l.Permits != 2 || l.Leases != 1 {
				t.Errorf("Locks: %+v", l)
			}
		}
		if freed, err := m.ForceUnlockOf(t.Context(), name, others); !freed || err != nil {
			t.Errorf("ForceUnlockOf: %v, %v", freed, err)
		}
		wantState(t, srv, 5, 3)
		if freed, err := m.ForceUnlockOf(t.Context(), name, others); freed || err != nil {
			t.Errorf("ForceUnlockOf again: %v, %v", freed, err)
		}
		if freed, err := other.ForceUnlock(t.Context(), name); !freed || err != nil {
			t.Errorf("ForceUnlock: %v, %v", freed, err)
		}
		wantState(t, srv, 5, 5)
		lost(t, one, holdfast.LostDeleted) // at its next renewal, or at once where it was freed
		if err := two.Unlock(t.Context()); !errors.Is(err, holdfast.ErrLeaseLost) {
			t.Errorf("Unlock of what was freed: %v", err)
		}
		wantState(t, srv, 5, 5)
	})
}

// Names in braces keep their slot.
func TestSemaphore_InACluster(t *testing.T) {
	c := redistest.StartCluster(t)
	m := locktest.ManagerFor(t, c.Client(t))
	for _, key := range []string{"plain", "in{braces}"} {
		s := m.Semaphore(key, 2)
		one, two := acquire(t, s, 1), acquire(t, s, 1)
		next := waiting(t, m, s, 2)
		unlock(t, one, two)
		unlock(t, granted(t, next))
	}
}

// W4: a caller of another process wants permits; and WithWanted, which permits cannot say, changes nothing.
func TestSemaphore_Wanted(t *testing.T) {
	redistest.OnServer(t, func(t *testing.T, srv *redistest.Server) {
		within := locktest.Patience
		if testing.Short() { // in fake time
			within = 1100 * time.Millisecond
		}
		a, b := user(t, srv, 1, append(locktest.Unasked, holdfast.WithWanted())...), user(t, srv, 1, locktest.Unasked...)
		for _, by := range []*holdfast.Semaphore{a, b} {
			lease := acquire(t, a, 1)
			select {
			case <-lease.Wanted():
				t.Error("no caller waits")
			case <-time.After(3 * time.Second):
			}
			refused(t, b, 1)
			next := by.AcquireAsync(t.Context(), 1)
			select {
			case <-lease.Wanted():
			case <-time.After(within):
				t.Error("it is not wanted")
			}
			unlock(t, lease)
			unlock(t, granted(t, next))
		}
	})
}
