package queue

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/locktest"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

const (
	queueOfA = "redisson_lock_queue:{a}"
	timesOfA = "redisson_lock_timeout:{a}"
)

// fairCrowd has n callers of m wait for the fair lock a until ctx ends.
func fairCrowd(ctx context.Context, t *testing.T, srv *redistest.Server, m *holdfast.Manager, n int) []<-chan holdfast.Result {
	t.Helper()
	all := make([]<-chan holdfast.Result, n)
	for i := range all {
		all[i] = m.FairMutex("a").LockAsync(ctx)
	}
	locktest.Queued(t, srv, queueOfA, int64(n))
	return all
}

// gone waits until the queue is empty.
func gone(t *testing.T, srv *redistest.Server) {
	t.Helper()
	redistest.Eventually(t, locktest.Patience, "the queue is empty", func() bool {
		return srv.Admin().Exists(t.Context(), queueOfA, timesOfA).Val() == 0
	})
}

// Taking one out of a long queue costs Redis as much as taking out hundreds.
func TestFair_ManyLeaveTogether(t *testing.T) {
	const n = 2000
	for name, end := range map[string]func(context.CancelFunc, *holdfast.Manager) error{
		"their context ends": func(cancel context.CancelFunc, _ *holdfast.Manager) error { cancel(); return nil },
		"Close":              func(_ context.CancelFunc, m *holdfast.Manager) error { return m.Close(context.Background()) },
	} {
		t.Run(name, func(t *testing.T) {
			srv := redistest.Start(t)
			held := locktest.MustLock(t, locktest.ManagerOn(t, srv).FairMutex("a"))
			m := locktest.ManagerOn(t, srv, locktest.Unasked...)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			all := fairCrowd(ctx, t, srv, m, n)
			before := m.Stats().Commands
			redistest.Check(t, end(cancel, m))
			for _, r := range all {
				if (<-r).Err == nil {
					t.Fatal("a waiter was granted a lock that is held")
				}
			}
			gone(t, srv)
			if sent := m.Stats().Commands - before; sent > n/20 {
				t.Errorf("%d commands for %d who left", sent, n)
			}
			locktest.MustUnlock(t, held)
		})
	}
}

// A batch that holds the lock hands it on.
func TestFair_BatchThatWasGrantedTheLock(t *testing.T) {
	redistest.OnServer(t, func(t *testing.T, srv *redistest.Server) {
		holder, other := locktest.ManagerOn(t, srv), locktest.ManagerOn(t, srv)
		m, p := locktest.ManagerVia(t, srv, locktest.Unasked...)
		held := locktest.MustLock(t, holder.FairMutex("a"))
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		first, endFirst := context.WithCancel(t.Context())
		defer endFirst()
		fairCrowd(first, t, srv, m, 1)
		for range 50 {
			m.FairMutex("a").LockAsync(ctx)
		}
		locktest.Queued(t, srv, queueOfA, 51)
		next := locktest.Waits(t, other.FairMutex("a"))
		locktest.Queued(t, srv, queueOfA, 52)
		gate := p.HoldRequest(locktest.ReleaseOn("a"))
		endFirst()
		gate.Wait(t)
		cancel()
		redistest.Eventually(t, locktest.Patience, "all have left", func() bool { return m.Stats().Waiting == 0 })
		ids := srv.Admin().LRange(t.Context(), queueOfA, 0, 1).Val()
		srv.Admin().LRem(t.Context(), queueOfA, 0, ids[0]) // so that the release grants it to one of the batch
		locktest.MustUnlock(t, held)
		if got := srv.Admin().HKeys(t.Context(), "a").Val(); !slices.Equal(got, ids[1:]) {
			t.Fatalf("granted to %q", got)
		}
		gate.Release()
		locktest.MustUnlock(t, next())
		gone(t, srv)
	})
}

// Two waiters leave together, behind one that left alone, and the request for the place of the last one arrives after that: it makes none.
func TestFair_LateRequestBehindThoseThatLeft(t *testing.T) {
	redistest.OnServer(t, func(t *testing.T, srv *redistest.Server) {
		const queue = "redisson_lock_queue:{a}"
		held := locktest.MustLock(t, locktest.ManagerOn(t, srv).FairMutex("a"))
		m, p := locktest.ManagerThatHangs(t, srv, locktest.Unasked...)
		first, leaveFirst := context.WithCancel(t.Context())
		ctx, leave := context.WithCancel(t.Context())
		for i, ctx := range []context.Context{first, ctx} {
			m.FairMutex("a").LockAsync(ctx)
			locktest.Queued(t, srv, queue, int64(i+1))
		}
		gate := p.HoldFirstRequest(locktest.JoinOn("a"))
		m.FairMutex("a").LockAsync(ctx)
		gate.Wait(t)
		locktest.Queued(t, srv, queue, 3) // by the copy
		alone := p.HoldRequest(locktest.ScriptOn("a", "lock_release"))
		leaveFirst()
		alone.Wait(t)
		leave()
		redistest.Eventually(t, locktest.Patience, "all have left", func() bool { return m.Stats().Waiting == 0 })
		alone.Release()
		locktest.Queued(t, srv, queue, 0)
		mon := srv.Monitor(t)
		gate.Release()
		mon.Wait(t, `"pttl" "a"`, locktest.Patience) // the last of what it does
		locktest.Queued(t, srv, queue, 0)
		locktest.MustUnlock(t, held)
	})
}

// A request whose reply is lost is sent again, for all of its claims.
func TestFair_LeavesTogetherOverABrokenConnection(t *testing.T) {
	redistest.OnServer(t, func(t *testing.T, srv *redistest.Server) {
		held := locktest.MustLock(t, locktest.ManagerOn(t, srv).FairMutex("a"))
		m, p := locktest.ManagerVia(t, srv, locktest.Unasked...)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		all := fairCrowd(ctx, t, srv, m, 500)
		p.LoseRequest(locktest.ScriptOn("a", "leave"), 1)
		p.LoseReply(locktest.ScriptOn("a", "leave"), 1)
		cancel()
		for _, r := range all {
			if err := (<-r).Err; !errors.Is(err, context.Canceled) {
				t.Fatal(err)
			}
		}
		gone(t, srv)
		redistest.Eventually(t, locktest.Patience, "nothing is under way", func() bool { return locktest.Pending(m) == 0 })
		locktest.MustUnlock(t, held)
	})
}
