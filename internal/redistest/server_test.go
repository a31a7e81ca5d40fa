package redistest

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestStart_FailsWithoutRedis(t *testing.T) {
	needsServer(t)
	t.Setenv("PATH", t.TempDir())
	t.Setenv(serverEnv, "")
	WantFailure(t, "`make redis` installs it", func(tb testing.TB) { Start(tb) })
}

func TestServer_CleanupResumesBeforeItKills(t *testing.T) {
	needsServer(t)
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

func TestServer_AOFHasEveryWriteInOrder(t *testing.T) {
	s := Start(t, WithAOF())
	rdb := s.Client(t)
	rdb.Set(t.Context(), "a", "1", 0)
	rdb.Eval(t.Context(), `redis.call('hset', KEYS[1], 'f', '1') redis.call('pexpire', KEYS[1], 60000)`, []string{"h"})
	s.Restart()
	rdb.Set(t.Context(), "b", strings.Repeat("x", 1<<10), time.Minute)

	var seen []string
	for _, cmd := range s.AOF() {
		seen = append(seen, strings.ToLower(strings.Join(cmd[:min(2, len(cmd))], " ")))
	}
	want := []string{"set a", "multi", "hset h", "pexpireat h", "exec", "set b"}
	seen = slices.DeleteFunc(seen, func(s string) bool { return strings.HasPrefix(s, "select") })
	if !slices.Equal(seen, want) {
		t.Errorf("AOF = %q, want %q", seen, want)
	}
}
