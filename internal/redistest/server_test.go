package redistest

import (
	"context"
	"testing"
)

func TestStart_FailsWithoutRedis(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	t.Setenv(serverEnv, "")
	wantFailure(t, "`make redis` installs it", func(tb testing.TB) { Start(tb) })
}

func TestServer_CleanupResumesBeforeItKills(t *testing.T) {
	var s *Server
	failed, log := runFake(t, func(tb testing.TB) {
		s = Start(tb)
		tb.Cleanup(func() { // such as the Close of what is being tested
			if err := s.Admin().Ping(context.Background()).Err(); err != nil {
				tb.Errorf("in a cleanup: %v", err)
			}
		})
		s.Pause()
	})
	if failed {
		t.Fatalf("failed: %s", log)
	}
	if !s.proc.exited() {
		t.Errorf("redis-server %d still runs", s.Pid())
	}
}
