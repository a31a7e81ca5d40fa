package state

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/locktest"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

// wantNotFreed fails unless ForceUnlock of "a" ends with an error that is is and says text, and the lock of held is as
// it was.
func wantNotFreed(t *testing.T, srv *redistest.Server, m *holdfast.Manager, held *holdfast.Lease, is error, text string) {
	t.Helper()
	before := srv.Keys()
	freed, err := m.ForceUnlock(context.Background(), "a")
	if locktest.WantErr(t, err, is, nil); freed || err != nil && !strings.Contains(err.Error(), text) {
		t.Errorf("freed %v, %v does not say %q", freed, err, text)
	}
	redistest.Eventually(t, locktest.Patience, "nothing is under way", func() bool { return locktest.Pending(m) == 0 && m.Stats().Locks == 0 })
	if after := srv.Keys(); len(after) != len(before) || srv.Admin().HLen(t.Context(), "a").Val() != 1 || held.Err() != nil {
		t.Errorf("keys %q became %q, the lease: %v", before, after, held.Err())
	}
}

// The user may run no scripts, or not the command in one that frees the lock.
func TestForceUnlock_Denied(t *testing.T) {
	srv := redistest.Start(t)
	held := locktest.MustLock(t, locktest.ManagerOn(t, srv).Mutex("a"))
	client, allow := locktest.LimitedOn(t, srv)
	m := locktest.ManagerAsIs(t, client)
	allow("-evalsha", "-eval")
	wantNotFreed(t, srv, m, held, holdfast.ErrUnavailable, "NOPERM")
	allow("+evalsha", "+eval", "-del")
	wantNotFreed(t, srv, m, held, holdfast.ErrUnavailable, "") // the words depend on the version
	allow("+del")
	if freed, err := m.ForceUnlock(t.Context(), "a"); !freed || err != nil {
		t.Errorf("with all rights: %v, %v", freed, err)
	}
}

// A lock of any kind is freed if the owner holds it, and only then, on a real server and on the one in the process.
func TestForceUnlockOf(t *testing.T) {
	for place, startServer := range map[string]func(testing.TB, ...redistest.ServerOption) *redistest.Server{
		"real": redistest.Start, "virtual": redistest.StartVirtual,
	} {
		for kind, lockOf := range map[string]func(*holdfast.Manager) holdfast.Locker{
			"mutex": func(m *holdfast.Manager) holdfast.Locker { return m.Mutex("a") },
			"fair":  func(m *holdfast.Manager) holdfast.Locker { return m.FairMutex("a") },
			"write": func(m *holdfast.Manager) holdfast.Locker { return m.RWMutex("a") },
			"read":  func(m *holdfast.Manager) holdfast.Locker { return m.RWMutex("a").RLocker() },
		} {
			t.Run(place+" "+kind, func(t *testing.T) {
				srv := startServer(t)
				m, holder, ctx := locktest.ManagerOn(t, srv), locktest.ManagerOn(t, srv), context.Background()
				of := func(owner string) bool {
					t.Helper()
					freed, err := m.ForceUnlockOf(ctx, "a", owner)
					redistest.Must(t, err)
					return freed
				}
				first := locktest.MustLock(t, lockOf(holder))
				owner := locktest.Inspected(t, m, "a").Holders[0].Owner
				locktest.MustUnlock(t, first)
				if of(owner) {
					t.Error("a free lock was freed")
				}
				second := locktest.MustLock(t, lockOf(holder))
				for _, other := range []string{owner, "", "mode", ":write", "a"} {
					if of(other) {
						t.Errorf("%q, which does not hold it, was taken for the owner", other)
					}
				}
				if !locktest.Inspected(t, m, "a").Held || second.Err() != nil {
					t.Fatal("the lock of another owner is gone")
				}
				other := waiterOf(ctx, m, kind)
				if !of(locktest.Inspected(t, m, "a").Holders[0].Owner) {
					t.Error("the holder's lock was not freed")
				}
				if other != nil { // a waiter is woken
					r := <-other
					if r.Err != nil {
						t.Fatal(r.Err)
					}
					redistest.Check(t, r.Lease.Unlock(ctx))
				}
				locktest.WantErr(t, second.Unlock(ctx), holdfast.ErrLeaseLost, nil)
			})
		}
	}
}

// waiterOf waits for the lock; nil: a reader would not have to.
func waiterOf(ctx context.Context, m *holdfast.Manager, kind string) <-chan holdfast.Result {
	switch kind {
	case "mutex":
		return m.Mutex("a").LockAsync(ctx)
	case "fair":
		return m.FairMutex("a").LockAsync(ctx)
	case "write":
		return m.RWMutex("a").LockAsync(ctx)
	}
	return nil
}

// What is no lock is left alone, whatever owner is named.
func TestForceUnlockOf_NoLock(t *testing.T) {
	srv := redistest.Start(t)
	m := locktest.ManagerOn(t, srv)
	redistest.Must(t, srv.Admin().HSet(t.Context(), "a", "name", "Ada", "mail", "x").Err())
	if freed, err := m.ForceUnlockOf(t.Context(), "a", "name"); freed || !errors.Is(err, holdfast.ErrWrongKind) {
		t.Errorf("%v, %v", freed, err)
	}
	if _, err := m.ForceUnlockOf(t.Context(), "{}", "x"); !errors.Is(err, holdfast.ErrInvalidName) {
		t.Error(err)
	}
	redistest.Must(t, m.Close(context.Background()))
	if _, err := m.ForceUnlockOf(t.Context(), "a", "x"); !errors.Is(err, holdfast.ErrClosed) {
		t.Error(err)
	}
}
