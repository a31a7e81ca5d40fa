package queue

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/locktest"
	"github.com/holdfast-go/holdfast/internal/locktest/several"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

// dead is a crowd of waiters that have died together, in front of a queue.
type dead struct {
	queue, times, tail string
	kept               bool // their places are kept for a while yet
}

func deadOf(writers, kept bool) dead {
	if writers {
		return dead{"holdfast_rw_queue:{a}", "holdfast_rw_timeout:{a}", ":write", kept}
	}
	return dead{queueOfA, timesOfA, "", kept}
}

// stand puts n of them into the queue, in front.
func (d dead) stand(t testing.TB, srv *redistest.Server, n int) {
	t.Helper()
	until := time.Now().Add(-time.Second)
	if d.kept {
		until = time.Now().Add(time.Hour)
	}
	ctx := context.Background()
	var ids []any
	var places []redis.Z
	for i := range n {
		id := fmt.Sprintf("hf-11111111-2222-4333-8444-%012d:%d%s", i%4, i+1, d.tail)
		ids = append(ids, id)
		places = append(places, redis.Z{Score: float64(until.UnixMilli()), Member: id})
	}
	redistest.Must(t, srv.Admin().ZAdd(ctx, d.times, places...).Err())
	redistest.Must(t, srv.Admin().LPush(ctx, d.queue, ids...).Err())
}

// A crowd that has died together is removed by many short requests, which the process that releases sends without being
// asked; and the waiter behind them gets the lock.
func TestCrowd_TheDeadInFrontKeepTheServerShortly(t *testing.T) {
	const n, atOnce = 3000, 500
	for name, c := range map[string]struct {
		lock    func(*holdfast.Manager) holdfast.Locker
		writers bool
		release string
	}{
		"mutex": {func(m *holdfast.Manager) holdfast.Locker { return m.Mutex("a") }, false, "lock_release"},
		"fair":  {func(m *holdfast.Manager) holdfast.Locker { return m.FairMutex("a") }, false, "lock_release"},
		"write": {func(m *holdfast.Manager) holdfast.Locker { return m.RWMutex("a") }, true, "rw_release"},
	} {
		// The first request may be copied before it is answered: the copy finds that the lock has been given back, and
		// comes behind the first. It does not end what the others do.
		for _, how := range []struct{ kept, copied bool }{{false, false}, {true, false}, {false, true}} {
			t.Run(fmt.Sprintf("%s, %+v", name, how), func(t *testing.T) {
				t.Parallel()
				srv := redistest.Start(t)
				holder, p := locktest.ManagerVia(t, srv, locktest.Unasked...)
				held := locktest.MustLock(t, c.lock(holder))
				next := locktest.Waits(t, c.lock(locktest.ManagerOn(t, srv, locktest.Unasked...)))
				crowd := deadOf(c.writers, how.kept)
				locktest.Queued(t, srv, crowd.queue, 1)
				srv.ResetStats()
				crowd.stand(t, srv, n)
				release := locktest.ScriptOn("a", c.release)
				first, second := p.HoldFirstReply(release), p.HoldRequest(release) // whatever comes behind the first
				unlocked := redistest.Begin(func() error { return locktest.Unlock(held) })
				first.Wait(t)
				left := srv.Admin().LLen(t.Context(), crowd.queue).Val()
				if scripts := srv.CommandCalls("evalsha", "eval"); n+1-left > scripts*atOnce { // those of the waiter, which may ask, as well
					t.Errorf("%d scripts have removed %d of %d", scripts, n+1-left, n)
				}
				if how.copied {
					second.Wait(t)
				}
				first.Release()
				second.Wait(t)
				if err := <-unlocked; err != nil { // while the rest goes on
					t.Error(err)
				}
				second.Release()
				locktest.MustUnlock(t, next())
				redistest.Want(t, srv.Admin().Exists(t.Context(), "a", crowd.queue, crowd.times).Val(), 0, "%d keys are left")
			})
		}
	}
}

// TryLock is not refused for the dead, however many there are; nor does a waiter that comes sleep behind them.
func TestCrowd_TheDeadKeepNobodyOut(t *testing.T) {
	for _, kept := range []bool{false, true} {
		t.Run(fmt.Sprintf("kept %v", kept), func(t *testing.T) {
			t.Parallel()
			srv := redistest.Start(t)
			m := locktest.ManagerOn(t, srv, locktest.Unasked...)
			for name, l := range map[string]holdfast.Locker{
				"mutex": m.Mutex("a"), "fair": m.FairMutex("a"), "write": m.RWMutex("a"), "read": m.RWMutex("a").RLocker(), "multi": several.Multi(t, m.Mutex("a"), m.Mutex("b")),
			} {
				crowd := deadOf(name == "write" || name == "read", kept)
				crowd.stand(t, srv, 1500)
				var lease *holdfast.Lease
				if err := locktest.UntilAnswered(func() (err error) { lease, err = l.TryLock(t.Context()); return err }); err != nil {
					t.Errorf("%s: %v", name, err)
					srv.Admin().Del(t.Context(), crowd.queue, crowd.times)
					continue
				}
				locktest.MustUnlock(t, lease)
				if !kept {
					crowd.stand(t, srv, 1500)
					locktest.MustUnlock(t, locktest.MustLock(t, l))
				}
				srv.Admin().Del(t.Context(), crowd.queue, crowd.times)
			}
		})
	}
}

// Waiters whose places have been deleted get them back by some requests for all of them, and each process's stand in the order of
// their calls.
func TestCrowd_ComesBackTogether(t *testing.T) {
	const n = 3000
	for name, keys := range map[string][]string{"the list": {queueOfA}, "the times": {timesOfA}, "both": {queueOfA, timesOfA}} {
		for _, processes := range []int{1, 3} {
			t.Run(fmt.Sprintf("%s, %d processes", name, processes), func(t *testing.T) {
				t.Parallel()
				srv := redistest.Start(t)
				rdb := srv.Admin()
				held := locktest.MustLock(t, locktest.ManagerOn(t, srv).FairMutex("a"))
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				var managers []*holdfast.Manager
				for range processes {
					managers = append(managers, locktest.ManagerOn(t, srv))
				}
				var all []<-chan holdfast.Result
				for i := range n {
					all = append(all, managers[i%processes].FairMutex("a").LockAsync(ctx))
				}
				locktest.Queued(t, srv, queueOfA, n)
				before := byProcess(rdb.LRange(ctx, queueOfA, 0, -1).Val())
				srv.ResetStats()
				rdb.Del(ctx, keys...)
				redistest.Eventually(t, time.Minute, "all stand again", func() bool {
					return rdb.LLen(ctx, queueOfA).Val() == n && rdb.ZCard(ctx, timesOfA).Val() == n
				})
				if calls := srv.CommandCalls("evalsha"); calls > n/10 {
					t.Errorf("%d requests for %d waiters", calls, n)
				}
				if after := byProcess(rdb.LRange(ctx, queueOfA, 0, -1).Val()); !maps.EqualFunc(before, after, slices.Equal[[]string]) {
					t.Error("a process's waiters do not stand in their order")
				}
				cancel()
				for _, r := range all {
					<-r
				}
				gone(t, srv)
				locktest.MustUnlock(t, held)
			})
		}
	}
}

// byProcess sorts the ids of a queue by their processes.
func byProcess(queue []string) map[string][]string {
	all := map[string][]string{}
	for _, id := range queue {
		process, _, _ := strings.Cut(id, ":")
		all[process] = append(all[process], id)
	}
	return all
}

// A place without a name keeps no waiter waiting. A batch of leaving waiters leaves one behind only if its script is cut off.
func TestFair_PlaceWithoutAName(t *testing.T) {
	srv := redistest.Start(t)
	held := locktest.MustLock(t, locktest.ManagerOn(t, srv, locktest.Unasked...).FairMutex("a"))
	next := locktest.Waits(t, locktest.ManagerOn(t, srv, locktest.Unasked...).FairMutex("a"))
	locktest.Queued(t, srv, queueOfA, 1)
	srv.Admin().LPush(t.Context(), queueOfA, "", "", "")
	locktest.MustUnlock(t, held)
	if owners := srv.Admin().HKeys(t.Context(), "a").Val(); len(owners) != 1 {
		t.Errorf("granted to %q", owners)
	}
	locktest.MustUnlock(t, next())
	gone(t, srv)
}

// ForceUnlock tells 64 waiters at most. Behind as many that have died a live one is not told, and finds out by asking.
func TestForceUnlock_BehindACrowdOfTheDead(t *testing.T) {
	const n, most = 200, 64
	for name, lock := range map[string]func(*holdfast.Manager) holdfast.Locker{
		"mutex": func(m *holdfast.Manager) holdfast.Locker { return m.Mutex("a") },
		"fair":  func(m *holdfast.Manager) holdfast.Locker { return m.FairMutex("a") },
		"write": func(m *holdfast.Manager) holdfast.Locker { return m.RWMutex("a") },
		"read":  func(m *holdfast.Manager) holdfast.Locker { return m.RWMutex("a").RLocker() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv := redistest.Start(t)
			crowd := deadOf(name == "write" || name == "read", false)
			other := locktest.ManagerOn(t, srv)
			m, p := locktest.ManagerVia(t, srv)
			held := lock(other)
			if name == "read" {
				held = other.RWMutex("a")
			}
			locktest.MustLock(t, held)
			next := locktest.Waits(t, lock(m))
			locktest.Queued(t, srv, crowd.queue, 1)
			p.Freeze(true) // or a request of the waiter's would remove the dead before
			mon := srv.Monitor(t)
			crowd.stand(t, srv, n)
			if freed, err := locktest.ManagerOn(t, srv).ForceUnlock(t.Context(), "a"); !freed || err != nil {
				t.Fatalf("%v, %v", freed, err)
			}
			p.Freeze(false)
			locktest.MustUnlock(t, next())
			redistest.Want(t, srv.Admin().Exists(t.Context(), "a", crowd.queue, crowd.times).Val(), 0, "%d keys are left")
			srv.Admin().Echo(t.Context(), "the end")
			mon.Wait(t, "the end", locktest.Patience)
			told := 0
			for _, line := range mon.Lines() {
				if strings.Contains(line, `lua] "publish" "holdfast_inbox:11111111-`) && strings.Contains(line, `"o `) {
					told++
				}
			}
			redistest.Want(t, told, most, "%d of the dead were told, want %d")
		})
	}
}
