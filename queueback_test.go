package holdfast_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

// After a fail-over to a replica that was behind, an owner that has been granted the lock may be gone from it and stand in
// the queue again. Its release, or its downgrade, takes it out: the next release would grant the lock to it, and it would
// be nobody's for the two seconds of a claim.
func TestRelease_LeavesTheQueueOfAStaleReplica(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	ctx, admin := t.Context(), srv.Admin()
	m, other := managerOn(t, srv), managerOn(t, srv)
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
				lease := mustLock(t, l.of(m))
				var id string
				for _, field := range admin.HKeys(ctx, "a").Val() {
					if field != "mode" {
						id = field
					}
				}
				if strings.HasPrefix(kind, "downgrade") {
					read, err := m.RWMutex("a").RLock(lease.Context(ctx))
					if err != nil {
						t.Fatal(err)
					}
					if kind == "downgraded" {
						mustUnlock(t, lease)
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
					next = mustLock(t, blocks(other))
				}
				admin.RPush(ctx, l.family+"queue:{a}", id)
				admin.ZAdd(ctx, l.family+"timeout:{a}", redis.Z{Score: float64(time.Now().Add(time.Minute).UnixMilli()), Member: id})
				wantErr(t, lease.Unlock(context.Background()), holdfast.ErrLeaseLost, nil)
				if n := admin.Exists(ctx, l.family+"queue:{a}", l.family+"timeout:{a}").Val(); n != 0 {
					t.Errorf("%q stand in the queue", admin.LRange(ctx, l.family+"queue:{a}", 0, -1).Val())
				}
				if stolen {
					mustUnlock(t, next)
				}
				if admin.Exists(ctx, "a").Val() != 0 {
					t.Errorf("the lock is held by %v", admin.HGetAll(ctx, "a").Val())
				}
			})
		}
	}
}
