package faults

import (
	"errors"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/locktest"
	"github.com/holdfast-go/holdfast/internal/locktest/several"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

// So are they for who comes to stand behind another of its process.
func TestFair_JoinsWithTombstonesOfAnotherKind(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	m, holder := locktest.ManagerOn(t, srv, locktest.Unasked...), locktest.ManagerOn(t, srv)
	held, other := locktest.MustLock(t, holder.FairMutex("a")), locktest.MustLock(t, holder.Mutex("other"))
	later := m.Mutex("other").LockAsync(t.Context()) // so that its inbox is heard, and no caller asks because of that
	locktest.InboxHeard(t, srv)
	first := m.FairMutex("a").LockAsync(t.Context())
	locktest.Queued(t, srv, "redisson_lock_queue:{a}", 1)
	srv.Admin().Set(t.Context(), "holdfast_tombstones:{a}", "no tombstones", 0)
	second := m.FairMutex("a").LockAsync(t.Context())
	locktest.WantErr(t, (<-second).Err, holdfast.ErrWrongKind, nil)

	locktest.WantErr(t, (<-first).Err, holdfast.ErrWrongKind, nil)
	if n := m.Stats().Troubles; n > 1 { // a server that stands still makes one of
		t.Errorf("%d requests in trouble", n)
	}
	srv.Admin().Del(t.Context(), "holdfast_tombstones:{a}")
	locktest.MustUnlock(t, held, other)
	locktest.MustUnlock(t, (<-later).Lease)
}

// Who may not read what is there is not told that it is something else.
func TestLock_DeniedReadsAreNoWrongKind(t *testing.T) {
	redistest.OnServer(t, func(t *testing.T, srv *redistest.Server) {
		admin := srv.Admin()
		holder := locktest.ManagerOn(t, srv)
		for _, denied := range []string{"-hlen", "-zscore", "-hget"} {
			client, allow := locktest.LimitedOn(t, srv)
			allow(denied)
			m := locktest.ManagerAsIs(t, client)
			admin.ZAdd(t.Context(), "holdfast_tombstones:{a}", redis.Z{Score: float64(time.Now().Add(time.Hour).UnixMilli()), Member: "somebody"})
			for name, l := range map[string]struct{ held, wanted holdfast.Locker }{
				"mutex": {holder.Mutex("a"), m.Mutex("a")}, "fair": {holder.FairMutex("a"), m.FairMutex("a")},
				"write": {holder.RWMutex("a"), m.RWMutex("a")}, "read": {holder.RWMutex("a"), m.RWMutex("a").RLocker()},
				"multi": {holder.Mutex("a"), several.Multi(t, m.Mutex("a"), m.Mutex("b"))},
			} {
				held := locktest.MustLock(t, l.held)
				if _, err := l.wanted.TryLock(t.Context()); err == nil || errors.Is(err, holdfast.ErrWrongKind) {
					t.Errorf("%s, %s: %v", denied, name, err)
				}
				locktest.MustUnlock(t, held)
			}
		}
	})
}

// What is wrong with the counter of tokens is the trouble of those who want tokens.
func TestLock_BrokenCounterBesideOneThatWantsNoToken(t *testing.T) {
	redistest.OnServer(t, func(t *testing.T, srv *redistest.Server) {
		holder, m := locktest.ManagerOn(t, srv), locktest.ManagerOn(t, srv)
		held := locktest.MustLock(t, holder.Mutex("a"))
		fenced := m.Mutex("a", holdfast.WithFencing()).LockAsync(t.Context())
		locktest.Queued(t, srv, "redisson_lock_queue:{a}", 1)
		plain := m.Mutex("a").LockAsync(t.Context())
		redistest.Eventually(t, locktest.Patience, "both wait", func() bool { return m.Stats().Waiting == 2 })
		srv.Admin().RPush(t.Context(), "redisson_lock_token:{a}", "no counter")
		locktest.MustUnlock(t, held)
		locktest.WantErr(t, (<-fenced).Err, holdfast.ErrWrongKind, nil)
		locktest.MustUnlock(t, locktest.Granted(t, plain))
	})
}
