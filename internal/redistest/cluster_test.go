package redistest

import (
	"fmt"
	"testing"
	"time"
)

func TestCluster_ServesEverySlot(t *testing.T) {
	t.Parallel()
	start := time.Now()
	c := StartCluster(t)
	t.Log("started in", time.Since(start))
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
}
