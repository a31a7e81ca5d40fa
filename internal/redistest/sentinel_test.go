package redistest

import (
	"testing"
	"time"
)

func TestSentinel_ReplacesAKilledMaster(t *testing.T) {
	t.Parallel()
	start := time.Now()
	s := StartSentinel(t, 2)
	t.Log("started in", time.Since(start))
	rdb := s.Client(t)
	for range 3 {
		if err := rdb.Set(t.Context(), "k", "v", 0).Err(); err != nil {
			t.Fatal(err)
		}
		old := s.Master()
		old.Kill()
		start = time.Now()
		master := s.AwaitNewMaster(old)
		t.Log("new master after", time.Since(start))
		if got := get(t, master, "k"); got != "v" {
			t.Errorf("k = %q at the new master", got)
		}
		start = time.Now()
		old.Restart()
		s.AwaitHealthy()
		t.Log("healthy after", time.Since(start))
	}
}
