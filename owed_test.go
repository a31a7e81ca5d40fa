package holdfast

import (
	"context"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/redistest"
)

// owing takes the locks of three managers on one server: nothing of them ends by itself.
func owing(t *testing.T) (srv *redistest.Server, locks []Locker) {
	t.Helper()
	srv = redistest.Start(t)
	for _, name := range []string{"a", "b", "c"} {
		m, err := New(srv.Client(t), WithLease(time.Hour), WithMaxHold(time.Hour))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = m.Close(context.Background()) })
		locks = append(locks, m.Mutex(name))
	}
	return srv, locks
}

func gone(t *testing.T, srv *redistest.Server, key string) {
	t.Helper()
	redistest.Eventually(t, 15*time.Second, key+" is given back", func() bool { return srv.Admin().Exists(t.Context(), key).Val() == 0 })
}

// A member of a Redlock reaches its limit, and the others are enough: it stays in Redis, as all will when the
// next has reached its own, and Unlock gives it back with them.
func TestOwed_OfAMemberThatEnds(t *testing.T) {
	t.Parallel()
	srv, locks := owing(t)
	l, err := NewRedlock(locks...)
	if err != nil {
		t.Fatal(err)
	}
	lease, err := l.Lock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	redistest.Eventually(t, 15*time.Second, "all have joined", func() bool { return lease.together().count() == 3 })
	p := lease.together().known()[0]
	p.inner().Inside().ReachLimit()
	if !lease.Valid() || p.Err() != ErrMaxHold {
		t.Errorf("it has ended: %v; and its member: %v", lease.Err(), p.Err())
	}
	if srv.Admin().Exists(t.Context(), p.Name()).Val() != 1 {
		t.Error("the member was given back")
	}
	if err := giveBack(lease); err != nil {
		t.Error(err)
	}
	for _, name := range []string{"a", "b", "c"} {
		gone(t, srv, name)
	}
}

// One of several locks reaches its limit when all have been taken and the lease is not handed out yet.
func TestOwed_OfALeaseThatNobodyGets(t *testing.T) {
	redistest.InWorlds(t, func(t *testing.T) {
		srv, locks := owing(t)
		l, err := NewMulti(locks...)
		if err != nil {
			t.Fatal(err)
		}
		whole := newGroupLease(&l.whole, len(l.locks))
		for _, h := range l.locks {
			p, err := h.take(t.Context(), "Lock", false)
			if err != nil {
				t.Fatal(err)
			}
			whole.join(p)
		}
		whole.together().known()[1].inner().Inside().ReachLimit()
		whole.dissolve()
		for _, h := range l.locks {
			gone(t, srv, h.lock.Name)
		}
	})
}

// What may still be under way is refused for a while by what its release leaves behind: so that is repeated
// for at least as long, however soon the lock itself would be gone.
func TestOwed_ForAsLongAsACopyMayCome(t *testing.T) {
	redistest.InWorlds(t, func(t *testing.T) {
		srv := redistest.Start(t)
		p := srv.Proxy(t)
		m, err := New(p.Client(t), WithLease(time.Second))
		if err != nil {
			t.Fatal(err)
		}
		defer m.Close(context.Background())
		lease, err := m.Mutex("a").Lock(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, unclear := range []bool{false, true} {
			left := lease.inner().Inside().ReleaseLasts(unclear)
			if least := time.Minute; unclear && left < least || !unclear && left > least {
				t.Errorf("unclear %v: given up after %v", unclear, left)
			}
		}
	})
}
