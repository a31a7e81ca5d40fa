//go:build unix

package main

import (
	"bufio"
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/internal/redistest"
)

// Commands that write the time to the file $1 every ten milliseconds: more often would take the processors from the
// guard, which must get them within the lease's margin of 160 ms. They say in it when they are told to end. The
// lock's name is held by one that nothing but KILL ends, or its child.
var writers = map[string]string{
	"polite":   `trap 'echo told >>"$1"; exit 0' TERM; while :; do date +%s%N >>"$1"; sleep 0.01; done`,
	"stubborn": `trap '' TERM INT HUP; while :; do date +%s%N >>"$1"; sleep 0.01; done`,
	"forks":    `trap '' TERM; (while :; do date +%s%N >>"$1"; sleep 0.01; done) & (while :; do date +%s%N >>"$1"; sleep 0.01; done) & wait`,
	"closes":   `trap '' TERM; exec <&- >&- 2>&-; while :; do date +%s%N >>"$1"; sleep 0.01; done`,
	"floods":   `trap '' TERM; yes & while :; do date +%s%N >>"$1"; sleep 0.01; done`,
	"stops":    `date +%s%N >>"$1"; kill -STOP $$; while :; do date +%s%N >>"$1"; sleep 0.01; done`,
}

// leavers are writers that leave the command's process group, where they are found.
var leavers []string

const (
	lossLease = 8 * time.Second
	lossGrace = "500ms"
)

// scenario is a command that runs under a lock, over a proxy.
type scenario struct {
	srv   *redistest.Server
	proxy *redistest.Proxy
	run   *invocation
	file  string // which the command writes
	name  string
}

func newScenario(t *testing.T, writer string, flags ...string) *scenario {
	t.Helper()
	s := &scenario{srv: redistest.Start(t), name: "job", file: filepath.Join(t.TempDir(), "times")}
	s.proxy = s.srv.Proxy(t)
	args := append([]string{"run", s.name, "--lease=" + lossLease.String(), "--grace=" + lossGrace}, flags...)
	args = append(args, "--", "sh", "-c", `echo $$ >"$1.pid"; `+writers[writer], "sh", s.file)
	s.run = prepare(t, urlVia(s.srv, s.proxy), args...)
	if writer == "floods" { // into a pipe without a reader
		r, w, err := os.Pipe()
		must(t, err)
		t.Cleanup(func() { r.Close(); w.Close() })
		s.run.Cmd.Stdout = w
	}
	must(t, s.run.Start())
	t.Cleanup(func() {
		if text, err := os.ReadFile(s.file + ".pid"); t.Failed() && err == nil { // the writer may be alive, and would write forever
			_ = syscall.Kill(-number(t, strings.TrimSpace(string(text))), syscall.SIGKILL)
		}
	})
	awaitFile(t, s.file)
	return s
}

// wantDeadBeforeTheNext waits until another process gets the lock, and checks that the command has written nothing from
// then on. It returns the command's lines.
func (s *scenario) wantDeadBeforeTheNext(t *testing.T) (lines []string) {
	t.Helper()
	lease, err := other(t, s.srv).Mutex(s.name).Lock(t.Context())
	granted := time.Now().UnixNano()
	must(t, err)
	before, err := os.ReadFile(s.file)
	must(t, err)
	defer lease.Unlock(context.Background())
	// A writer that is alive writes within this time.
	time.Sleep(200 * time.Millisecond)
	after, err := os.ReadFile(s.file)
	must(t, err)
	if len(after) != len(before) {
		t.Errorf("the command is alive after another has got the lock: it has written %q", after[len(before):])
	}
	lines = strings.Split(strings.TrimSpace(string(after)), "\n")
	for i := len(lines) - 1; i >= 0; i-- {
		if at, err := strconv.ParseInt(lines[i], 10, 64); err == nil {
			left := time.Duration(granted - at)
			t.Logf("the last write was %v before the grant", left)
			if left < 0 {
				t.Errorf("the command wrote %v after another got the lock", -left)
			}
			break
		}
	}
	return lines
}

func told(lines []string) int {
	n := 0
	for _, l := range lines {
		if l == "told" {
			n++
		}
	}
	return n
}

// When Redis is out of reach, the command is dead before another gets the lock.
func TestRun_CutOff(t *testing.T) {
	t.Parallel()
	for writer := range writers {
		t.Run(writer, func(t *testing.T) {
			t.Parallel()
			s := newScenario(t, writer)
			s.proxy.BlackHole(true)
			lines := s.wantDeadBeforeTheNext(t)
			s.run.exits(t, 121)
			if writer == "polite" && told(lines) != 1 {
				t.Errorf("told %d times to end, want once", told(lines))
			}
		})
	}
	t.Run("kill", func(t *testing.T) {
		t.Parallel()
		s := newScenario(t, "polite", "--on-loss=kill")
		s.proxy.BlackHole(true)
		if lines := s.wantDeadBeforeTheNext(t); told(lines) > 0 {
			t.Error("told to end")
		}
		s.run.exits(t, 121)
	})
}

// If the process that holds the lock is killed, its guard ends the command and what that has started.
func TestRun_Killed(t *testing.T) {
	t.Parallel()
	for _, writer := range append([]string{"polite", "stubborn", "forks", "stops"}, leavers...) {
		t.Run(writer, func(t *testing.T) {
			t.Parallel()
			s := newScenario(t, writer)
			must(t, s.run.Process.Kill())
			lines := s.wantDeadBeforeTheNext(t)
			if writer == "polite" && told(lines) == 0 {
				t.Error("not told to end")
			}
			s.run.wait(t) // the guard has stderr until it ends
			// The kernel may have ended the polite one before the guard looks; then the guard has nothing to say.
			if writer != "polite" && !strings.Contains(s.run.stderr.String(), "the process that holds the lock has died") {
				t.Errorf("stderr: %q", &s.run.stderr)
			}
		})
	}
}

// If the process that holds the lock is stopped beyond its lease, the command is dead before that is over.
func TestRun_Stopped(t *testing.T) {
	t.Parallel()
	for _, writer := range append([]string{"polite", "forks"}, leavers...) {
		t.Run(writer, func(t *testing.T) {
			t.Parallel()
			s := newScenario(t, writer)
			must(t, s.run.Process.Signal(syscall.SIGSTOP))
			lines := s.wantDeadBeforeTheNext(t)
			if writer == "polite" && told(lines) != 1 {
				t.Errorf("told %d times to end, want once", told(lines))
			}
			must(t, s.run.Process.Signal(syscall.SIGCONT))
			s.run.exits(t, 121)
		})
	}
}

// A lock that another client deletes or takes ends the command, with TERM first.
func TestRun_TakenAway(t *testing.T) {
	t.Parallel()
	says := map[string]string{"deleted": "it was deleted", "stolen": "another owner has taken the lock"}
	for name, take := range map[string]func(*testing.T, *redis.Client){
		"deleted": func(t *testing.T, rdb *redis.Client) {
			must(t, rdb.Del(t.Context(), "job").Err())
		},
		"stolen": func(t *testing.T, rdb *redis.Client) {
			if _, err := rdb.TxPipelined(t.Context(), func(p redis.Pipeliner) error {
				p.Del(t.Context(), "job")
				p.HSet(t.Context(), "job", "11111111-2222-3333-4444-555555555555:1", 1)
				return p.PExpire(t.Context(), "job", time.Minute).Err()
			}); err != nil {
				t.Error(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newScenario(t, "polite")
			take(t, s.srv.Admin())
			s.run.exits(t, 121)
			if text := awaitFile(t, s.file); !strings.HasSuffix(text, "told\n") {
				t.Error("not told to end")
			}
			if !strings.Contains(s.run.stderr.String(), says[name]) {
				t.Errorf("stderr does not say %q: %q", says[name], &s.run.stderr)
			}
		})
	}
	for _, writer := range leavers {
		t.Run(writer, func(t *testing.T) {
			t.Parallel()
			s := newScenario(t, writer)
			s.srv.Admin().Del(t.Context(), "job")
			s.run.exits(t, 121)
			s.wantDeadBeforeTheNext(t)
		})
	}
	t.Run("and the command exits by itself", func(t *testing.T) {
		t.Parallel()
		srv := redistest.Start(t)
		file := filepath.Join(t.TempDir(), "go")
		i := start(t, urlOf(srv), "run", "job", "--", "sh", "-c", `until test -e "$1"; do sleep 0.01; done`, "sh", file)
		redistest.Eventually(t, patience, "the lock is held", func() bool { return srv.Admin().Del(t.Context(), "job").Val() == 1 })
		must(t, os.WriteFile(file, nil, 0o600))
		i.exits(t, 121)
	})
	t.Run("and people are only told", func(t *testing.T) {
		t.Parallel()
		srv := redistest.Start(t)
		dir := t.TempDir()
		ready, end := filepath.Join(dir, "ready"), filepath.Join(dir, "end")
		i := prepare(t, urlOf(srv), "run", "job", "--on-loss=warn", "--lease=600ms", "--", "sh", "-c",
			`trap 'echo told' TERM; echo >"$1"; until test -e "$2"; do sleep 0.01; done; echo done`, "sh", ready, end)
		stderr, w, err := os.Pipe()
		must(t, err)
		i.Cmd.Stderr = w
		must(t, i.Start())
		_ = w.Close()
		awaitFile(t, ready)
		srv.Admin().Del(t.Context(), "job")
		line, err := bufio.NewReader(stderr).ReadString('\n')
		if err != nil || !strings.HasSuffix(line, "the lock is gone: it was deleted, or the server has lost it; the command runs on without the lock\n") {
			t.Errorf("stderr: %q, %v", line, err)
		}
		must(t, os.WriteFile(end, nil, 0o600))
		i.prints(t, 121, "done\n")
	})
}
