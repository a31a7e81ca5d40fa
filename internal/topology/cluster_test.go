package topology

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
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
		mustUnlock(t, mustLock(t, m.Mutex(name)))
	}
}

// wantFree fails if the lock's key is left over.
func wantFree(t *testing.T, c *redistest.Cluster) {
	t.Helper()
	if n := c.Owner(name).Admin().Exists(context.Background(), name).Val(); n != 0 {
		t.Error("the lock's key is left over")
	}
}

// AC-85. A graceful fail-over loses nothing: no error, no overlap.
func TestCluster_GracefulFailoverUnderLoad(t *testing.T) {
	t.Parallel()
	c := redistest.StartCluster(t)
	ms := clients(t, c, 3, holdfast.WithHandoffSlice(0)) // every pair goes to Redis
	l := startLoad(name, ms, 4, 1000)
	for range 2 {
		from, to := c.Failover(name, redistest.Graceful)
		if from == to {
			t.Fatal("no fail-over")
		}
		c.AwaitHealthy()
	}
	l.wait(t, "2 graceful fail-overs")
	l.wantNoErrors(t)
	l.wantPrompt(t)
	l.wantExclusive(t)
	everyClientCanLock(t, ms)
	wantFree(t, c)
}

// A replica that takes over without asking its master may lack the last writes.
func TestCluster_ForcedFailoverUnderLoad(t *testing.T) {
	t.Parallel()
	c := redistest.StartCluster(t)
	ms := clients(t, c, 3, holdfast.WithHandoffSlice(0))
	l := startLoad(name, ms, 4, 0)
	for _, how := range []redistest.Failover{redistest.Force, redistest.Takeover} {
		c.Failover(name, how)
		c.AwaitHealthy()
	}
	l.finish(t, "2 forced fail-overs") // overlaps are reported: data may be lost
	l.wantNoErrors(t)
	everyClientCanLock(t, ms)
}

// A master is killed: its locks are served by the replica, and one that was held and
// replicated is kept.
func TestCluster_KilledMaster(t *testing.T) {
	t.Parallel()
	c := redistest.StartCluster(t)
	ms := clients(t, c, 2, holdfast.WithHandoffSlice(0))
	held := mustLock(t, ms[0].Mutex("{"+name+"}held"))
	acknowledged(t, c.Owner(name), 1)
	l := startLoad(name, ms, 3, 0)
	old := c.Owner(name)
	old.Kill()
	c.AwaitNewOwner(name, old)
	before := ms[0].Stats().Renewals
	eventually(t, "the held lock is renewed by the new master", func() bool { return ms[0].Stats().Renewals > before })
	l.finish(t, "killed master")
	if err := held.Err(); err != nil {
		t.Errorf("the lock that was held and replicated: %v", err)
	}
	l.wantNoErrors(t)
	mustUnlock(t, held)
	everyClientCanLock(t, ms)
	// go-redis alone would look for the new master after a minute.
	if bound := 4 * time.Second * slack; l.longest > bound {
		t.Errorf("unavailable for %v", l.longest)
	}
}

// acknowledged waits until n replicas have what the server has. An empty write makes
// them say so.
func acknowledged(t *testing.T, s *redistest.Server, n int) {
	t.Helper()
	eventually(t, fmt.Sprintf("%d replicas in sync", n), func() bool {
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
		mustUnlock(t, mustLock(t, m.Mutex(n)))
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
			eventually(t, "the request is sent", func() bool { return m.Stats().Commands > sent })
		}
		start := time.Now()
		mustUnlock(t, mustLock(t, m.Mutex(alive)))
		longest = max(longest, time.Since(start))
	}
	t.Logf("1 frozen master, %d callers: longest pair on another master %v", callers, longest)
	if longest > time.Second { // a shared connection would have made it 5 s, go-redis's read time-out
		t.Errorf("a pair on another master took %v", longest)
	}
}
