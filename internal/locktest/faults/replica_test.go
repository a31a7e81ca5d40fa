package faults

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/locktest"
	"github.com/holdfast-go/holdfast/internal/locktest/several"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

// behind makes srv a replica that has nothing yet of what the master has, as a name may lead to for
// a moment after a fail-over. caughtUp makes it the master. Who comes through p sees nothing in between.
func behind(t *testing.T, srv *redistest.Server, p *redistest.Proxy) (caughtUp func()) {
	t.Helper()
	ctx, admin := t.Context(), srv.Admin()
	type copied struct {
		key, value string
		ttl        time.Duration
	}
	must := func(err error) {
		t.Helper()
		redistest.Must(t, err)
	}
	p.Freeze(true)
	var all []copied
	for _, key := range srv.Keys() {
		all = append(all, copied{key, admin.Dump(ctx, key).Val(), max(0, admin.PTTL(ctx, key).Val())})
	}
	must(admin.FlushAll(ctx).Err())
	must(admin.Do(ctx, "REPLICAOF", "127.0.0.1", "1").Err())
	p.Freeze(false)
	return func() {
		t.Helper()
		p.Freeze(true)
		must(admin.Do(ctx, "REPLICAOF", "NO", "ONE").Err())
		for _, c := range all {
			must(admin.Restore(ctx, c.key, c.ttl, c.value).Err())
		}
		p.Freeze(false)
	}
}

// troubled waits until Redis has refused a request of m's since it had seen n of them.
func troubled(t *testing.T, m *holdfast.Manager, n uint64) {
	t.Helper()
	redistest.Eventually(t, locktest.Patience, "a replica refuses", func() bool {
		s := m.Stats()
		return s.Troubles+s.RenewalFailures > n
	})
}

// unlocked unlocks for as long as it takes: Unlock itself waits for a second.
func unlocked(t *testing.T, l *holdfast.Lease) (err error) {
	for {
		if err = l.Unlock(t.Context()); !errors.Is(err, holdfast.ErrUnavailable) || t.Context().Err() != nil {
			return err
		}
	}
}

// A replica that is behind does not know of a lock: no process concludes from that that it is gone.
func TestReplica_DoesNotSayGone(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	m, p := locktest.ManagerVia(t, srv, holdfast.WithLease(6*time.Second))
	for name, l := range map[string]holdfast.Locker{
		"mutex": m.Mutex("a"), "fair": m.FairMutex("a"), "write": m.RWMutex("a"), "read": m.RWMutex("a").RLocker(),
	} {
		t.Run(name, func(t *testing.T) {
			lease := locktest.MustLock(t, l)
			caughtUp := behind(t, srv, p)
			troubled(t, m, m.Stats().RenewalFailures+m.Stats().Troubles) // by renewals
			if !lease.Valid() {
				t.Error(lease.Err())
			}
			caughtUp()

			caughtUp = behind(t, srv, p)
			before := m.Stats().RenewalFailures + m.Stats().Troubles
			released := redistest.Begin(func() error { return unlocked(t, lease) })
			troubled(t, m, before)
			caughtUp()
			redistest.Check(t, <-released)
			srv.RequireNoKeys(t, "holdfast_tombstones:")
		})
	}
}

// Nor that the write side is gone, and with it the read side that is to be left of it.
func TestReplica_DowngradeIsAskedAgain(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	m, p := locktest.ManagerVia(t, srv)
	write := locktest.MustLock(t, m.RWMutex("a"))
	read := locktest.Got(t, m.RWMutex("a").RLock, write.Context(t.Context()))
	caughtUp := behind(t, srv, p)
	before := m.Stats().Troubles
	done := redistest.Begin(func() error { return unlocked(t, write) })
	troubled(t, m, before)
	caughtUp()
	if err := <-done; err != nil || !read.Valid() {
		t.Error(err, read.Err())
	}
	locktest.MustUnlock(t, read)
}

// Nor is a lock taken for held that the master has free; and one of which nothing is known for free.
func TestReplica_DoesNotSayHeld(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	other := locktest.ManagerOn(t, srv)
	m, p := locktest.ManagerVia(t, srv)
	for name, l := range map[string]holdfast.Locker{
		"mutex": m.Mutex("a"), "fair": m.FairMutex("a"), "write": m.RWMutex("a"), "read": m.RWMutex("a").RLocker(),
		"multi": several.Multi(t, m.Mutex("a"), m.Mutex("b")),
	} {
		t.Run(name, func(t *testing.T) {
			held := holdfast.Locker(other.Mutex("a"))
			if name == "write" || name == "read" {
				held = other.RWMutex("a")
			}
			lease := locktest.MustLock(t, held)
			redistest.Must(t, srv.Admin().Do(t.Context(), "REPLICAOF", "127.0.0.1", "1").Err())
			_, err := l.TryLock(t.Context())
			locktest.WantErr(t, err, holdfast.ErrUnavailable, holdfast.ErrNotAcquired)
			freed, err := m.ForceUnlock(t.Context(), "a")
			if locktest.WantErr(t, err, holdfast.ErrUnavailable, nil); freed || !strings.Contains(err.Error(), "READONLY") {
				t.Errorf("ForceUnlock: %v, %v", freed, err)
			}
			redistest.Must(t, srv.Admin().Do(t.Context(), "REPLICAOF", "NO", "ONE").Err())
			locktest.MustUnlock(t, lease)
		})
	}
	locktest.MustLock(t, m.Mutex("c"))
	caughtUp := behind(t, srv, p)
	freed, err := m.ForceUnlock(context.Background(), "c")
	if err == nil || freed {
		t.Errorf("ForceUnlock: %v, %v", freed, err)
	}
	caughtUp()
}

// After a fail-over to a replica that was behind, an owner that has been granted the lock may be gone from it and stand in
// the queue again. Its release, or its downgrade, takes it out: the next release would grant the lock to it, and it would
// have no owner for the two seconds of a claim.
func TestRelease_LeavesTheQueueOfAStaleReplica(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	ctx, admin := t.Context(), srv.Admin()
	m, other := locktest.ManagerOn(t, srv), locktest.ManagerOn(t, srv)
	for kind, l := range map[string]struct {
		of     func(*holdfast.Manager) holdfast.Locker
		family string
	}{
		"mutex":        {func(m *holdfast.Manager) holdfast.Locker { return m.Mutex("a") }, "redisson_lock_"},
		"fenced mutex": {func(m *holdfast.Manager) holdfast.Locker { return m.Mutex("a", holdfast.WithFencing()) }, "redisson_lock_"},
		"fair":         {func(m *holdfast.Manager) holdfast.Locker { return m.FairMutex("a") }, "redisson_lock_"},
		"write":        {func(m *holdfast.Manager) holdfast.Locker { return m.RWMutex("a") }, "holdfast_rw_"},
		"read":         {func(m *holdfast.Manager) holdfast.Locker { return m.RWMutex("a").RLocker() }, "holdfast_rw_"},
		"downgrade":    {func(m *holdfast.Manager) holdfast.Locker { return m.RWMutex("a") }, "holdfast_rw_"},
		"downgraded":   {func(m *holdfast.Manager) holdfast.Locker { return m.RWMutex("a") }, "holdfast_rw_"},
	} {
		for _, stolen := range []bool{false, true} {
			name := kind + " deleted"
			if stolen {
				name = kind + " stolen"
			}
			t.Run(name, func(t *testing.T) {
				admin.FlushAll(ctx)
				lease := locktest.MustLock(t, l.of(m))
				var id string
				for _, field := range admin.HKeys(ctx, "a").Val() {
					if field != "mode" {
						id = field
					}
				}
				if strings.HasPrefix(kind, "downgrade") {
					read := locktest.Got(t, m.RWMutex("a").RLock, lease.Context(ctx))
					if kind == "downgraded" {
						locktest.MustUnlock(t, lease)
						lease = read
					}
				}
				admin.Del(ctx, append(admin.Keys(ctx, "*rwlock_timeout*").Val(), "a")...)
				var next *holdfast.Lease
				if stolen {
					blocks := l.of
					if kind == "read" || strings.HasPrefix(kind, "downgrade") {
						blocks = func(m *holdfast.Manager) holdfast.Locker { return m.RWMutex("a") }
					}
					next = locktest.MustLock(t, blocks(other))
				}
				admin.RPush(ctx, l.family+"queue:{a}", id)
				admin.ZAdd(ctx, l.family+"timeout:{a}", redis.Z{Score: float64(time.Now().Add(time.Minute).UnixMilli()), Member: id})
				locktest.WantErr(t, lease.Unlock(context.Background()), holdfast.ErrLeaseLost, nil)
				if n := admin.Exists(ctx, l.family+"queue:{a}", l.family+"timeout:{a}").Val(); n != 0 {
					t.Errorf("%q stand in the queue", admin.LRange(ctx, l.family+"queue:{a}", 0, -1).Val())
				}
				if stolen {
					locktest.MustUnlock(t, next)
				}
				if admin.Exists(ctx, "a").Val() != 0 {
					t.Errorf("the lock is held by %v", admin.HGetAll(ctx, "a").Val())
				}
			})
		}
	}
}
