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

// owing are the locks a, b and c of three managers on one server: nothing of them ends by itself. The last is behind a proxy.
func owing(t *testing.T) (srv *redistest.Server, managers []*holdfast.Manager, locks []holdfast.Locker, p *redistest.Proxy) {
	t.Helper()
	srv = redistest.Start(t)
	opts := []holdfast.Option{holdfast.WithLease(time.Hour), holdfast.WithMaxHold(2 * time.Hour)}
	last, p := locktest.ManagerVia(t, srv, opts...)
	managers = []*holdfast.Manager{locktest.ManagerOn(t, srv, opts...), locktest.ManagerOn(t, srv, opts...), last}
	for i, m := range managers {
		locks = append(locks, m.Mutex(string(rune('a'+i))))
	}
	return srv, managers, locks, p
}

func gone(t *testing.T, srv *redistest.Server) {
	t.Helper()
	for _, key := range []string{"a", "b", "c"} {
		redistest.Eventually(t, locktest.Patience, key+" is given back", func() bool { return srv.Admin().Exists(t.Context(), key).Val() == 0 })
	}
}

// A member of a Redlock reaches its limit, and the others are enough: it stays in Redis, as all will when the
// next has reached its own, and Unlock gives it back with them.
func TestOwed_OfAMemberThatEnds(t *testing.T) {
	t.Parallel()
	srv, managers, locks, _ := owing(t)
	l, err := holdfast.NewRedlock(locks...)
	redistest.Must(t, err)
	lease := locktest.MustLock(t, l)
	redistest.Eventually(t, locktest.Patience, "all have joined", func() bool {
		locktest.MustExtend(t, lease, 90*time.Minute) // prolongs those that have
		for _, key := range []string{"a", "b", "c"} {
			if srv.Admin().PTTL(t.Context(), key).Val() < 80*time.Minute {
				return false
			}
		}
		return true
	})
	seam.Engine(managers[0]).Inside("a").ReachLimit()
	if held := managers[0].Stats().Held; !lease.Valid() || held != 0 {
		t.Errorf("it has ended: %v; and of its member there are %d", lease.Err(), held)
	}
	redistest.Want(t, srv.Admin().Exists(t.Context(), "a").Val(), 1, "the member was given back")
	redistest.Check(t, locktest.Unlock(lease))
	gone(t, srv)
}

// One of several locks reaches its limit before all have been taken, and the caller goes.
func TestOwed_OfALeaseThatNobodyGets(t *testing.T) {
	redistest.InWorlds(t, func(t *testing.T) {
		srv, managers, locks, p := owing(t)
		l, err := holdfast.NewMulti(locks...)
		redistest.Must(t, err)
		gate := p.HoldReply(locktest.ScriptOn("c", "lock_acquire"))
		ctx, leave := context.WithCancel(t.Context())
		defer leave()
		failed := locktest.Calls(l.Lock, ctx)
		gate.Wait(t)
		seam.Engine(managers[1]).Inside("b").ReachLimit()
		leave()
		gate.Release()
		if err := (<-failed).Err; !errors.Is(err, holdfast.ErrNotAcquired) && !errors.Is(err, holdfast.ErrUnavailable) {
			t.Error(err) // a busy machine holds the reply for so long that Redis counts as silent
		}
		gone(t, srv)
	})
}

// A part that comes when the others have lapsed does not make up for them, even if no caller was told yet: in between,
// others may have had the lock.
func TestOwed_OfAPartAfterALapse(t *testing.T) {
	t.Parallel()
	srv, managers, locks, p := owing(t)
	l, err := holdfast.NewRedlock(locks...)
	redistest.Must(t, err)
	gate := p.HoldReply(locktest.ScriptOn("c", "lock_acquire"))
	lease := locktest.MustLock(t, l)
	gate.Wait(t)
	if !lease.Valid() {
		t.Fatal("not valid")
	}
	seam.Engine(managers[1]).Inside("b").SetEnd(time.Now().Add(-time.Second))
	gate.Release()
	redistest.Eventually(t, locktest.Patience, "the late part is given back", func() bool { return srv.Admin().Exists(t.Context(), "c").Val() == 0 })
	if lease.Valid() {
		t.Error("the lease is valid")
	}
}
