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

// lost fails unless the lease is found to be lost for this reason.
func lost(t *testing.T, l *holdfast.Lease, reason holdfast.LostReason) {
	t.Helper()
	select {
	case <-l.Done():
	case <-time.After(locktest.Patience):
		t.Fatal("the lease has not ended")
	}
	if err := (*holdfast.LostError)(nil); !errors.As(l.Err(), &err) || err.Reason != reason {
		t.Fatalf("it ended with %v, want %s", l.Err(), reason)
	}
}

// A holder that dies gives its permits back at the end of their TTL, and the waiter has them then.
func TestSemaphore_HolderDies(t *testing.T) {
	redistest.OnServer(t, func(t *testing.T, srv *redistest.Server) {
		dead, proxy := locktest.ManagerVia(t, srv, holdfast.WithLease(2*time.Second))
		m := locktest.ManagerOn(t, srv, locktest.Unasked...)
		l := acquire(t, dead.Semaphore(name, 2), 2)
		next := waiting(t, m, m.Semaphore(name, 2), 1)
		stands(t, srv, 1)
		proxy.Freeze(true) // as a process that stands still
		unlock(t, granted(t, next))
		lost(t, l, holdfast.LostDeadline)
		wantState(t, srv, 2, 2)
		proxy.Freeze(false)
	})
}

// P2, P6: a lease lasts longer than its TTL, which a renewal sets anew; a grant by message is confirmed.
func TestSemaphore_IsRenewed(t *testing.T) {
	redistest.OnServerInFakeTime(t, func(t *testing.T, srv *redistest.Server) {
		ma, mb := locktest.ManagerOn(t, srv, holdfast.WithLease(time.Second)), locktest.ManagerOn(t, srv, holdfast.WithLease(5*time.Second))
		a, b := ma.Semaphore(name, 3), mb.Semaphore(name, 3)
		first := acquire(t, a, 3)
		next := waiting(t, mb, b, 2)
		stands(t, srv, 1)
		unlock(t, first)
		second, third := granted(t, next), acquire(t, a, 1)
		time.Sleep(time.Minute) // in fake time
		if !second.Valid() || !third.Valid() {
			t.Fatalf("ended: %v, %v", second.Err(), third.Err())
		}
		wantState(t, srv, 3, 0)
		ends := srv.Admin().ZRangeWithScores(t.Context(), held, 0, -1).Val()
		now := float64(time.Now().UnixMilli())
		if len(ends) != 3 || ends[0].Score <= now || ends[2].Score > now+5000 {
			t.Errorf("the ends are %v at %v", ends, now)
		}
		unlock(t, second, third)
		wantState(t, srv, 3, 3)
	})
}

// Whichever reply is lost, no permit is lost or lent.
func TestSemaphore_LostReplies(t *testing.T) {
	redistest.OnServer(t, func(t *testing.T, srv *redistest.Server) {
		m, proxy := locktest.ManagerVia(t, srv)
		s := m.Semaphore(name, 3)
		proxy.LoseReply(locktest.ScriptOn(name, "permit_acquire"), 1)
		l := acquire(t, s, 2)
		wantState(t, srv, 3, 1)
		proxy.LoseReply(locktest.ScriptOn(name, "permit_release"), 1)
		unlock(t, l)
		wantState(t, srv, 3, 3)
	})
}

// A caller that gives up while its request has no answer leaves no permit taken, also if the request comes late.
func TestSemaphore_LateAcquire(t *testing.T) {
	redistest.OnServer(t, func(t *testing.T, srv *redistest.Server) {
		m, proxy := locktest.ManagerVia(t, srv)
		s := m.Semaphore(name, 3)
		gate := proxy.HoldFirstRequest(locktest.ScriptOn(name, "permit_acquire"))
		ctx, cancel := context.WithCancel(t.Context())
		result := s.AcquireAsync(ctx, 2)
		gate.Wait(t)
		cancel()
		if r := <-result; !errors.Is(r.Err, context.Canceled) {
			t.Fatalf("%v, %v", r.Lease, r.Err)
		}
		redistest.Eventually(t, locktest.Patience, "the claim is undone", func() bool {
			return srv.Admin().ZCard(t.Context(), "holdfast_tombstones:{downloads}").Val() == 1
		})
		gate.Release()
		redistest.Eventually(t, locktest.Patience, "nothing is under way", func() bool { return m.Stats().Locks == 0 })
		unlock(t, acquire(t, s, 3)) // behind the late request
		wantState(t, srv, 3, 3)
	})
}

// A message of a grant that is lost costs a poll.
func TestSemaphore_LostMessage(t *testing.T) {
	redistest.OnServer(t, func(t *testing.T, srv *redistest.Server) {
		m, proxy := locktest.ManagerVia(t, srv, holdfast.WithPollInterval(100*time.Millisecond))
		l := acquire(t, user(t, srv, 2), 2)
		next := waiting(t, m, m.Semaphore(name, 2), 2)
		stands(t, srv, 1)
		proxy.Hush(true)
		unlock(t, l)
		unlock(t, granted(t, next))
		wantState(t, srv, 2, 2)
	})
}

// What is deleted in Redis ends the leases that it was of, and no other, and makes no permit.
func TestSemaphore_Deleted(t *testing.T) {
	redistest.OnServer(t, func(t *testing.T, srv *redistest.Server) {
		s := user(t, srv, 3, holdfast.WithLease(time.Second))
		first := acquire(t, s, 2)
		srv.Admin().Del(t.Context(), name)
		refused(t, s, 2) // one is left, and two are held
		if !first.Valid() {
			t.Fatal("the lease has ended with the number")
		}
		second := acquire(t, s, 1)
		wantState(t, srv, 3, 0)
		srv.Admin().Del(t.Context(), held)
		lost(t, first, holdfast.LostDeleted)
		lost(t, second, holdfast.LostDeleted)
		if err := second.Unlock(t.Context()); !errors.Is(err, holdfast.ErrLeaseLost) {
			t.Errorf("Unlock: %v", err)
		}
		refused(t, s, 1) // as in Java, until the number is repaired
		redistest.Must(t, s.SetPermits(t.Context(), 3))
		unlock(t, acquire(t, s, 3))
	})
}

// If the number is deleted, the next release has the first place count again.
func TestSemaphore_NumberDeleted(t *testing.T) {
	redistest.OnServer(t, func(t *testing.T, srv *redistest.Server) {
		a, m := user(t, srv, 2), locktest.ManagerOn(t, srv, locktest.Unasked...)
		one, other := acquire(t, a, 1), acquire(t, a, 1)
		next := waiting(t, m, m.Semaphore(name, 2), 1)
		stands(t, srv, 1)
		srv.Admin().Del(t.Context(), name)
		unlock(t, one)
		unlock(t, told(t, next), other)
		wantState(t, srv, 2, 2)
	})
}

// Keys of another kind are named, and left alone.
func TestSemaphore_WrongKind(t *testing.T) {
	redistest.OnServer(t, func(t *testing.T, srv *redistest.Server) {
		s := user(t, srv, 3)
		for _, key := range []string{name, held, queue, "holdfast_tombstones:{downloads}"} {
			srv.Admin().HSet(t.Context(), key, "a", "1", "b", "2")
			_, err := s.TryAcquire(t.Context(), 1)
			locktest.WantErr(t, err, holdfast.ErrWrongKind, holdfast.ErrUnavailable)
			if n := srv.Admin().HLen(t.Context(), key).Val(); n != 2 {
				t.Errorf("%s was changed", key)
			}
			srv.Admin().Del(t.Context(), key)
		}
		unlock(t, acquire(t, s, 3))
		wantState(t, srv, 3, 3)
	})
}

// Close gives back what is held, and fails the callers that wait.
func TestSemaphore_Close(t *testing.T) {
	redistest.OnServer(t, func(t *testing.T, srv *redistest.Server) {
		m := locktest.ManagerOn(t, srv)
		s := m.Semaphore(name, 3)
		l := acquire(t, s, 2)
		next := waiting(t, m, s, 2)
		stands(t, srv, 1)
		redistest.Must(t, m.Close(t.Context()))
		if r := <-next; !errors.Is(r.Err, holdfast.ErrClosed) || !errors.Is(l.Err(), holdfast.ErrClosed) {
			t.Errorf("the waiter: %v, the lease: %v", r.Err, l.Err())
		}
		wantState(t, srv, 3, 3)
		redistest.Want(t, srv.Admin().Exists(t.Context(), queue).Val(), 0, "a place is left")
	})
}
