package redistest

import (
	"context"
	"fmt"
	"net"
	"os"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

func TestStart_ServesOnlyWhoKnowsThePassword(t *testing.T) {
	s := Start(t)
	info := s.Client(t).Info(t.Context(), "server").Val()
	if got, want := infoField(info, "process_id"), strconv.Itoa(s.Pid()); got != want {
		t.Errorf("process_id = %s, want the child's pid %s", got, want)
	}
	stranger := s.ClientWith(t, func(o *redis.Options) { o.Password = "" })
	if err := stranger.Ping(t.Context()).Err(); err == nil || !strings.Contains(err.Error(), "NOAUTH") {
		t.Errorf("ping without password: %v, want NOAUTH", err)
	}
}

func TestStart_Options(t *testing.T) {
	s := Start(t, WithoutPassword(), WithArgs("--maxmemory", "7mb"))
	if got := s.Password(); got != "" {
		t.Errorf("Password() = %q, want none", got)
	}
	rdb := redis.NewClient(&redis.Options{Addr: s.Addr()})
	defer rdb.Close()
	got := rdb.ConfigGet(t.Context(), "maxmemory").Val()["maxmemory"]
	if want := strconv.Itoa(7 << 20); got != want {
		t.Errorf("maxmemory = %q, want %q", got, want)
	}
	if err := rdb.Do(t.Context(), "debug", "sleep", "0").Err(); err != nil {
		t.Errorf("DEBUG is refused: %v", err)
	}
}

func TestStart_FailsWithoutRedis(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	t.Setenv(serverEnv, "")
	wantFailure(t, "`make redis` installs it", func(tb testing.TB) { Start(tb) })
}

func TestStart_FailsWithTheServersReason(t *testing.T) {
	wantFailure(t, "no-such-setting", func(tb testing.TB) { Start(tb, WithArgs("--no-such-setting", "1")) })
}

// The log of a server that was well says nothing about a failure, and eight lines of it hide the rest.
func TestStart_LogsTheLogOfADeadServerWhenTheTestFails(t *testing.T) {
	const boot = "Ready to accept connections"
	fail := func(tb testing.TB) { tb.Errorf("something is wrong") }
	if failed, log := runFake(t, func(tb testing.TB) { Start(tb); fail(tb) }); !failed || strings.Contains(log, boot) {
		t.Errorf("failed = %v with %q", failed, log)
	}
	wantFailure(t, boot, func(tb testing.TB) {
		s := Start(tb)
		_ = s.Admin().Shutdown(context.Background()).Err()
		Eventually(tb, Patience, "it is dead", func() bool { return !s.running() })
		fail(tb)
	})
	t.Setenv(logEnv, "1")
	wantFailure(t, boot, func(tb testing.TB) { Start(tb); fail(tb) })
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

func TestServer_PauseStopsAndResumeContinues(t *testing.T) {
	s := Start(t)
	c := dial(t, s.Addr(), s.Password())
	for range 3 {
		s.Pause()
		if runtime.GOOS == "linux" {
			if state := processState(t, s.Pid()); state != "T" {
				t.Errorf("state = %s after Pause, want T", state)
			}
		}
		c.send("INCR", "n")
		c.wantSilence()
		s.Resume()
		s.Resume()
		c.read()
	}
	if got := c.do("GET", "n"); got != "3" {
		t.Errorf("n = %s, want 3", got)
	}
}

// processState returns the state letter of /proc/<pid>/stat.
func processState(t *testing.T, pid int) string {
	t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(b), ") ")
	return rest[:1]
}

func TestServer_AOFSurvivesKillAndRestart(t *testing.T) {
	s := Start(t, WithAOF())
	addr, pid := s.Addr(), s.Pid()
	rdb := s.Client(t)
	if err := rdb.Set(t.Context(), "k", "v", 0).Err(); err != nil {
		t.Fatal(err)
	}
	s.Kill()
	if conn, err := net.Dial("tcp", addr); err == nil {
		conn.Close()
		t.Errorf("a killed server accepts connections")
	}
	s.Restart()
	if s.Addr() != addr || s.Pid() == pid {
		t.Errorf("restarted at %s as %d, want the address %s and another pid than %d", s.Addr(), s.Pid(), addr, pid)
	}
	if got, err := rdb.Get(t.Context(), "k").Result(); got != "v" {
		t.Errorf("k = %q, %v after restart, want v", got, err)
	}
	s.Pause()
	s.Restart() // also from a paused state, without Kill
	if got, err := s.Admin().Get(t.Context(), "k").Result(); got != "v" {
		t.Errorf("k = %q, %v after second restart, want v", got, err)
	}
}

func TestServer_RestartWithoutAOFForgets(t *testing.T) {
	s := Start(t)
	s.Admin().Set(t.Context(), "k", "v", 0)
	s.Restart()
	if keys := s.Keys(); len(keys) != 0 {
		t.Errorf("keys = %q after restart, want none", keys)
	}
}

func TestServer_RestartNoWaitShowsLoading(t *testing.T) {
	// Redis answers once in 1024 loaded commands; 100 µs for each make that
	// every 0.1 s, and 0.3 s in all.
	s := Start(t, WithAOF(), WithArgs("--key-load-delay", "100", "--appendfsync", "no"))
	pipe := s.Admin().Pipeline()
	for i := range 3000 {
		pipe.Set(t.Context(), fmt.Sprint("k", i), "v", 0)
	}
	if _, err := pipe.Exec(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.RestartNoWait()
	conn, err := dialRaw(s.Addr(), s.Password(), Patience)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(Patience))
	_, err = conn.do("GET", "k0")
	if err == nil || !strings.HasPrefix(err.Error(), "LOADING") {
		t.Errorf("GET during restart: %v, want LOADING", err)
	}
	s.Restart() // this one waits
	if n := dial(t, s.Addr(), s.Password()).do("DBSIZE"); n != "3000" {
		t.Errorf("%s keys after loading, want 3000", n)
	}
}
