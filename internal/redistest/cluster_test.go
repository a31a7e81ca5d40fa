package redistest

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

func TestCluster_ServesEverySlot(t *testing.T) {
	t.Parallel()
	c := StartCluster(t)
	rdb := c.Client(t)
	owners := make(map[*Server]int)
	for i := range 30 {
		key := fmt.Sprint("k", i)
		if err := rdb.Set(t.Context(), key, i, 0).Err(); err != nil {
			t.Fatal(err)
		}
		owner := c.Owner(key)
		owners[owner]++
		if got := get(t, owner, key); got != fmt.Sprint(i) {
			t.Errorf("%s = %q at its owner", key, got)
		}
		if r := c.Replica(key); r == owner || c.OtherMaster(key) == owner {
			t.Errorf("owner, replica and other master are not different servers")
		}
	}
	if len(owners) != clusterMasters {
		t.Errorf("%d masters own keys", len(owners))
	}
	stranger := c.ClientWith(t, func(o *redis.ClusterOptions) { o.Password = "" })
	if err := stranger.Get(t.Context(), "k0").Err(); err == nil || !strings.Contains(err.Error(), "NOAUTH") {
		t.Errorf("without password: %v, want NOAUTH", err)
	}
}

func TestCluster_EveryFailoverPromotesTheReplica(t *testing.T) {
	t.Parallel()
	c := StartCluster(t)
	for _, how := range []Failover{Graceful, Force, Takeover} {
		set(t, c.Owner("k"), "k", string(how), 1)
		from, to := c.Failover("k", how)
		if owner := c.Owner("k"); owner != to || from == to {
			t.Errorf("%q: the owner is %s, want %s", how, owner.Addr(), to.Addr())
		}
		if got := get(t, to, "k"); got != string(how) {
			t.Errorf("%q: k = %q", how, got)
		}
		c.AwaitHealthy()
		if r := c.Replica("k"); r != from {
			t.Errorf("%q: the old master is not the replica", how)
		}
	}
}

func TestCluster_KilledMasterIsReplacedAndComesBack(t *testing.T) {
	t.Parallel()
	c := StartCluster(t)
	old, want := c.Owner("k"), c.Replica("k")
	set(t, old, "k", "v", 1)
	old.Kill()
	if owner := c.AwaitNewOwner("k", old); owner != want {
		t.Fatalf("the new owner is %s, want the replica %s", owner.Addr(), want.Addr())
	}
	if got := get(t, want, "k"); got != "v" {
		t.Errorf("k = %q", got)
	}
	old.Restart()
	c.AwaitHealthy()
	if r := c.Replica("k"); r != old {
		t.Error("the old master has not come back as replica")
	}
}

func TestCluster_SlotMovesUnderLoad(t *testing.T) {
	t.Parallel()
	c := StartCluster(t)
	rdb := c.Client(t)
	for i := range 300 { // several portions
		rdb.Set(t.Context(), fmt.Sprintf("{k}%d", i), "v", 0)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var load sync.WaitGroup
	for w := range 4 {
		load.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				if err := rdb.Incr(context.Background(), fmt.Sprintf("{k}n%d", (i+w)%10)).Err(); err != nil {
					t.Errorf("during a migration: %v", err)
				}
			}
		})
	}
	for range 3 {
		from, to := c.Owner("k"), c.OtherMaster("k")
		m := c.StartMigration("k", to)
		if owner := c.Owner("k"); owner != from {
			t.Error("the slot has moved before the end")
		}
		if err := from.Admin().Get(t.Context(), "{k}none").Err(); err == nil || !strings.HasPrefix(err.Error(), "ASK ") {
			t.Errorf("a missing key at the old owner: %v, want ASK", err)
		}
		m.Finish()
		if owner := c.Owner("k"); owner != to {
			t.Errorf("the owner is %s, want %s", owner.Addr(), to.Addr())
		}
	}
	cancel()
	load.Wait()
	if n, err := c.Owner("k").Admin().ClusterCountKeysInSlot(t.Context(), c.Slot("k")).Result(); n != 310 || err != nil {
		t.Errorf("%d keys after three migrations, %v; want 310", n, err)
	}
}

func TestCluster_FailsWithTheServersReason(t *testing.T) {
	t.Parallel()
	wantFailure(t, "no-such-setting", func(tb testing.TB) { StartCluster(tb, WithArgs("--no-such-setting", "1")) })
}

func TestCluster_NothingIsLeftRunning(t *testing.T) {
	t.Parallel()
	var c *Cluster
	if failed, log := runFake(t, func(tb testing.TB) {
		c = StartCluster(tb)
		c.Nodes()[0].Pause()
		c.Nodes()[1].Kill()
	}); failed {
		t.Fatal(log)
	}
	for _, n := range c.Nodes() {
		if !n.proc.exited() {
			t.Errorf("node %d still runs", n.Pid())
		}
	}
}

func TestAwait_SaysWhatIsMissing(t *testing.T) {
	t.Parallel()
	wantFailure(t, "a reason", func(tb testing.TB) {
		awaitFor(tb, 20*time.Millisecond, "anything", func() error { return fmt.Errorf("a reason") })
	})
}

// set writes a key and waits for n replicas to have it.
func set(t *testing.T, s *Server, key, value string, n int) {
	t.Helper()
	ctx := t.Context()
	conn := s.Admin().Conn()
	defer conn.Close()
	if err := conn.Set(ctx, key, value, 0).Err(); err != nil {
		t.Fatal(err)
	}
	if got, err := conn.Wait(ctx, n, Patience).Result(); err != nil || got < int64(n) {
		t.Fatalf("%d replicas have %q, %v", got, key, err)
	}
}
