package topology

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/locktest"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

const name = "orders:17"

// clients returns managers on clients of their own.
func clients(t *testing.T, c *redistest.Cluster, n int, opts ...holdfast.Option) []*holdfast.Manager {
	var all []*holdfast.Manager
	for range n {
		all = append(all, manager(t, c.Client(t), opts...))
	}
	return all
}

// everyClientCanLock fails unless the lock is free and every manager gets it. What was
// released late, in the background, may take a moment.
func everyClientCanLock(t *testing.T, managers []*holdfast.Manager) {
	t.Helper()
	for _, m := range managers {
		locktest.MustUnlock(t, locktest.MustLock(t, m.Mutex(name)))
	}
}

// AC-85. A graceful fail-over loses nothing: no error, no overlap, over 1,000 pairs.
func TestCluster_GracefulFailoverUnderLoad(t *testing.T) {
	underLoad(t, clusterGraceful, true, 1000, func(c *redistest.Cluster, _ int) {
		from, to := c.Failover(name, redistest.Graceful)
		if from == to {
			t.Error("no fail-over")
		}
		c.AwaitHealthy()
	})
}

// A replica that takes over without asking its master may lack the last writes.
func TestCluster_ForcedFailoverUnderLoad(t *testing.T) {
	underLoad(t, clusterForced, false, 50, func(c *redistest.Cluster, round int) {
		c.Failover(name, []redistest.Failover{redistest.Force, redistest.Takeover}[round%2])
		c.AwaitHealthy()
	})
}

// underLoad has a cluster change again and again while a lock is in use, for so many pairs at least, and one beside it is held.
func underLoad(t *testing.T, what string, lossless bool, pairs int, change func(c *redistest.Cluster, round int)) {
	scenario(t, what, lossless, func(t *testing.T, r *row) {
		c := redistest.StartCluster(t)
		ms := clients(t, c, 3, r.options()...)
		l := startLoad(name, ms, 4)
		l.goesOn(t, 1)
		for round := range r.rounds() {
			r.faults++
			held := locktest.MustLock(t, ms[0].Mutex(beside))
			change(c, round)
			if kept := r.judge(t, held, ms[1].Mutex(beside)); !kept && r.replicas == 1 {
				t.Error("the only replica had the lock, and it was lost")
			}
			l.goesOn(t, int32(max(20, pairs/r.rounds())))
		}
		l.finish(t, r)
		if what == clusterGraceful {
			l.wantPrompt(t)
		}
		everyClientCanLock(t, ms)
		if lossless {
			redistest.Want(t, c.Owner(name).Admin().Exists(t.Context(), name).Val(), 0, "the lock's key is left over")
		}
	})
}

// beside is a lock in the slot of the load's.
const beside = "{" + name + "}held"

// A master is killed: its locks are served by the replica, and one that was held and
// replicated is kept. In every other round the replica has not heard of it.
func TestCluster_KilledMaster(t *testing.T) {
	scenario(t, clusterKill, false, func(t *testing.T, r *row) {
		c := redistest.StartCluster(t)
		ms := clients(t, c, 2, r.options()...)
		l := startLoad(name, ms, 3)
		l.goesOn(t, 1)
		for round := range r.rounds() {
			old, replica, unheard := c.Owner(name), c.Replica(name), round%2 == 1
			if unheard {
				isolate(t, old, replica)
			}
			held := r.hold(t, ms[0].Mutex(beside), unheard)
			if !unheard {
				acknowledged(t, old, 1)
			}
			old.Kill()
			killed := time.Now()
			r.faults++
			replica.Resume()
			c.AwaitNewOwner(name, old)
			elected := time.Now()
			if r.replicas > 0 {
				old.Restart() // until then there is no replica, and no grant
			}
			locktest.MustUnlock(t, locktest.MustLock(t, ms[1].Mutex(beside+":probe")))
			r.behind = max(r.behind, time.Since(elected))
			if held == nil {
				locktest.MustUnlock(t, locktest.MustLock(t, ms[1].Mutex(beside))) // nothing was left behind
			} else if !r.judge(t, held, ms[1].Mutex(beside)) && !unheard && time.Since(killed) < lease/2 {
				t.Errorf("round %d: the replica had the lock, and it was lost", round)
			}
			if r.replicas == 0 {
				old.Restart()
			}
			c.AwaitHealthy()
			l.goesOn(t, 20)
		}
		l.finish(t, r)
		everyClientCanLock(t, ms)
		// go-redis alone would look for the new master after a minute. A lock whose release
		// was lost is back for the rest of its lease.
		if bound := lease + 12*time.Second; r.unavailable > bound {
			t.Errorf("unavailable for %v", r.unavailable)
		}
	})
}

// acknowledged waits until n replicas have what the server has. An empty write makes
// them say so.
func acknowledged(t *testing.T, s *redistest.Server, n int) {
	t.Helper()
	redistest.Eventually(t, patience, fmt.Sprintf("%d replicas in sync", n), func() bool {
		got, err := s.Admin().Wait(context.Background(), n, time.Second).Result()
		return err == nil && got >= int64(n)
	})
}

// A master that has stopped, but still takes connections and requests, is the worst
// case for those who talk to others: they must not notice.
func TestCluster_FrozenMasterDelaysNoOtherShard(t *testing.T) {
	t.Parallel()
	c := redistest.StartCluster(t)
	m := clients(t, c, 1, holdfast.WithHandoffSlice(0))[0]
	frozen, alive := name, ""
	for i := 0; alive == ""; i++ {
		if n := fmt.Sprint("other", i); c.Owner(n) != c.Owner(frozen) {
			alive = n
		}
	}
	for _, n := range []string{frozen, alive} {
		locktest.MustUnlock(t, locktest.MustLock(t, m.Mutex(n)))
	}
	c.Owner(frozen).Pause()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	// Each caller has a name of its own and keeps asking. The first ones come one by one,
	// so that each takes a connection.
	const callers = 100
	var longest time.Duration
	for i := range callers {
		sent := m.Stats().Commands
		m.Mutex(fmt.Sprintf("{%s}%d", frozen, i)).LockAsync(ctx)
		if i < 4 {
			redistest.Eventually(t, patience, "the request is sent", func() bool { return m.Stats().Commands > sent })
		}
		start := time.Now()
		locktest.MustUnlock(t, locktest.MustLock(t, m.Mutex(alive)))
		longest = max(longest, time.Since(start))
	}
	t.Logf("1 frozen master, %d callers: longest pair on another master %v", callers, longest)
	if longest > 2*time.Second { // a shared connection would have made it 5 s, go-redis's read time-out
		t.Errorf("a pair on another master took %v", longest)
	}
}
