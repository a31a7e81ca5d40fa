//go:build unix

package main

import (
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

// start starts the command; it is killed at the end of the test.
func start(t *testing.T, url string, args ...string) *invocation {
	t.Helper()
	i := newInvocation(t, args...)
	i.Env = append(i.Env, "HOLDFAST_REDIS="+url)
	must(t, i.Start())
	t.Cleanup(func() {
		_ = i.Process.Signal(syscall.SIGCONT)
		_ = i.Process.Kill()
	})
	return i
}

// other is another process's manager.
func other(t *testing.T, srv *redistest.Server, opts ...holdfast.Option) *holdfast.Manager {
	t.Helper()
	m, err := holdfast.New(srv.Client(t), opts...)
	must(t, err)
	t.Cleanup(func() { _ = m.Close(context.Background()) })
	return m
}

// hold locks the mutex name until the test ends.
func hold(t *testing.T, srv *redistest.Server, name string) *holdfast.Lease {
	t.Helper()
	lease, err := other(t, srv).Mutex(name).Lock(t.Context())
	must(t, err)
	t.Cleanup(func() { _ = lease.Unlock(context.Background()) })
	return lease
}

// awaitFile waits until the file has a whole line, and returns its text.
func awaitFile(t *testing.T, file string) string {
	t.Helper()
	var text []byte
	redistest.Eventually(t, patience, "a line in "+filepath.Base(file), func() bool {
		text, _ = os.ReadFile(file)
		return strings.Contains(string(text), "\n")
	})
	return string(text)
}

func awaitGone(t *testing.T, pid int) {
	t.Helper()
	redistest.Eventually(t, patience, "process "+strconv.Itoa(pid)+" is gone", func() bool {
		return syscall.Kill(pid, 0) == syscall.ESRCH
	})
}

func TestRun_Status(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	hold(t, srv, "busy")
	must(t, srv.Admin().Set(t.Context(), "a string", "x", 0).Err())
	dir := t.TempDir()
	garbage := filepath.Join(dir, "garbage")
	bare := filepath.Join(dir, "bare")
	for file, text := range map[string]string{garbage: "no\x00program\n", bare: "exit $1\n"} {
		must(t, os.WriteFile(file, []byte(text), 0o700))
	}
	for _, tt := range []struct {
		name   string
		args   []string
		status int
		stderr string // a pattern; empty: nothing is said
	}{
		{"success", []string{"free", "--", "true"}, 0, ""},
		{"failure", []string{"free", "--", "sh", "-c", "exit 7"}, 7, ""},
		{"without the dashes", []string{"free", "true"}, 0, ""},
		{"flags after the name", []string{"free", "--kind=fair", "--", "sh", "-c", "exit 3"}, 3, ""},
		{"a lock named help", []string{"help", "--", "true"}, 0, ""},
		{"ended by a signal", []string{"free", "--", "sh", "-c", "kill -KILL $$"}, 137, ""},
		{"busy", []string{"busy", "-n", "--", "true"}, 124, `^holdfast: busy is held by hf-[-0-9a-f]+:1, for [0-9.]+s unless renewed; not run\n$`},
		{"busy in time", []string{"busy", "-w", "3s", "--", "true"}, 124, `not run\n$`},
		{"busy with a status", []string{"busy", "-n", "-E", "75", "--", "true"}, 75, `not run\n$`},
		{"busy and quiet", []string{"busy", "-n", "-q", "--", "true"}, 124, ""},
		{"not found", []string{"free", "--", "no-such-program"}, 127, `"no-such-program": executable file not found in \$PATH\n$`},
		{"not to be run", []string{"free", "--", "/etc/passwd"}, 126, `permission denied\n$`},
		{"no program", []string{"free", "--", garbage}, 126, `exec format error\n$`},
		{"a script without #!", []string{"free", "--", bare, "8"}, 8, ""},
		{"flags of the command without the dashes", []string{"free", "sh", "-c", "exit 5"}, 5, ""},
		{"a word for completions at the end", []string{"free", "--", "test", "x", "=", completionFlag}, 1, ""},
		{"no command", []string{"free"}, 125, `a lock's name and a command are needed`},
		{"unknown flag", []string{"free", "--no-such", "--", "true"}, 125, `no-such.*\(see holdfast run --help\)\n$`},
		{"unknown kind", []string{"free", "--kind=sema", "--", "true"}, 125, `--kind is mutex, fair, read or write, not "sema"`},
		{"unknown loss", []string{"free", "--on-loss=shrug", "--", "true"}, 125, `--on-loss is term, kill or warn`},
		{"grace too long", []string{"free", "--grace=11s", "--", "true"}, 125, `a third of the lease, 10s`},
		{"lease too short", []string{"free", "--lease=1ms", "--", "true"}, 125, `must be between 10ms`},
		{"max hold below the lease", []string{"free", "--max-hold=1s", "--", "true"}, 125, `WithMaxHold`},
		{"wait and no wait", []string{"free", "-n", "-w", "1s", "--", "true"}, 125, `exclude each other`},
		{"no lock", []string{"a string", "--", "true"}, 125, `key is of another kind`},
		{"no name", []string{"", "--", "true"}, 125, `invalid lock name`},
		{"two servers", []string{"free", "--redis=" + urlOf(srv), "--redis=" + urlOf(srv), "--", "true"}, 125, `at least three`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			i := start(t, urlOf(srv), append([]string{"run"}, tt.args...)...)
			i.exits(t, tt.status)
			if i.stdout.Len() > 0 {
				t.Errorf("stdout: %q", &i.stdout)
			}
			if got := i.stderr.String(); (tt.stderr == "" && got != "") || !regexp.MustCompile(tt.stderr).MatchString(got) {
				t.Errorf("stderr is %q, want %q", got, tt.stderr)
			}
		})
	}
	redistest.WantMost(t, srv.Admin().Exists(t.Context(), "free", "help").Val(), 0, "a lock was not given back")
}

// Servers as a person on call meets them. Nothing is run.
func TestRun_BadServers(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	master := redistest.Start(t, redistest.WithoutPassword())
	host, port, _ := strings.Cut(master.Addr(), ":")
	replica := redistest.Start(t, redistest.WithoutPassword())
	do(t, replica, "replicaof", host, port)
	do(t, srv, "acl", "setuser", "guest", "on", ">secret", "~*", "&*", "+ping", "+hello", "+client")
	dead := redistest.Start(t)
	dead.Kill()
	for _, tt := range []struct {
		name, url, stderr string
	}{
		{"no server", urlOf(dead), `redis cannot be reached: .*connection refused`},
		{"wrong password", "redis://:wrong@" + srv.Addr(), `redis cannot be reached: .*WRONGPASS`},
		{"no password", "redis://" + srv.Addr(), `redis cannot be reached: .*NOAUTH`},
		{"no rights", "redis://guest:secret@" + srv.Addr(), `NOPERM`},
		{"a replica", "redis://" + replica.Addr(), `READONLY|not acquired`},
		{"no URL", "localhost", `URL 1 of --redis is no URL`},
		{"unknown scheme", "http://localhost", "URL 1 of --redis is no URL of Redis"},
		{"unreadable password", "redis://:pa/ss%zz@localhost", `URL 1 of --redis .*write special characters`},
		{"no master named", "redis+sentinel://localhost", `does not name the master`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			ran := filepath.Join(t.TempDir(), "ran")
			i := start(t, tt.url, "run", "job", "-n", "--timeout=2s", "--", "touch", ran)
			i.exits(t, 125)
			if got := i.stderr.String(); !regexp.MustCompile(tt.stderr).MatchString(got) {
				t.Errorf("stderr is %q, want %q", got, tt.stderr)
			} else if strings.Contains(got, "secret") || strings.Contains(got, "ss%zz") || strings.Contains(got, srv.Password()) {
				t.Errorf("stderr has the password: %q", got)
			}
			if _, err := os.Stat(ran); err == nil {
				t.Error("the command was run")
			}
		})
	}
}

// The command has the streams and the environment, and no owner id.
func TestRun_StreamsAndEnvironment(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	i := newInvocation(t, "run", "job", "--fencing", "-v", "--", "sh", "-c", `cat; env; echo mistake >&2; read line; echo "end: $?"`)
	i.Env = append(i.Env, "HOLDFAST_REDIS="+urlOf(srv), tokenEnv+"=77", lockEnv+"=outer")
	i.Stdin = strings.NewReader("input\n")
	must(t, i.Start())
	i.exits(t, 0)
	stdout := i.stdout.String()
	for _, want := range []string{"input\n", "\nHOLDFAST_LOCK=job\n", "\nHOLDFAST_TOKEN=1\n", "end: 1\n"} {
		if !strings.Contains(stdout, want) {
			t.Errorf("stdout has no %q", want)
		}
	}
	for _, unwanted := range []string{"=77\n", "=outer\n", "hf-", "holdfast:"} {
		if strings.Contains(stdout, unwanted) {
			t.Errorf("stdout has %q", unwanted)
		}
	}
	if !strings.Contains(i.stderr.String(), "mistake\n") || !strings.Contains(i.stderr.String(), "holdfast: holds job\n") {
		t.Error("stderr lacks the command's line or ours")
	}
	srv.RequireNoKeys(t, "redisson_lock_token:{job}")
}

// A lock that another process hands over has a lease of two seconds at first, less than the grace time. The command
// starts after the first renewal.
func TestRun_AfterAHandOver(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	proxy := srv.Proxy(t)
	lease := hold(t, srv, "job")
	ran := filepath.Join(t.TempDir(), "ran")
	i := start(t, fmt.Sprintf("redis://:%s@%s", srv.Password(), proxy.Addr()), "run", "job", "--", "touch", ran)
	// The command asks once, subscribes, and asks again. Its place has a fraction until the server has executed the
	// second request: a release before that grants nothing, and the second request would take the whole lease.
	redistest.Eventually(t, patience, "the command waits and listens", func() bool {
		places, err := srv.Admin().ZRangeWithScores(t.Context(), "redisson_lock_timeout:{job}", 0, -1).Result()
		return err == nil && len(places) == 1 && places[0].Score == math.Trunc(places[0].Score)
	})
	gate := proxy.HoldRequest(func(cmd []string) bool { // the renewal has no other key
		keys, _, ok := redistest.ScriptCall(cmd)
		return ok && len(keys) == 1 && keys[0] == "job"
	})
	must(t, lease.Unlock(t.Context()))
	gate.Wait(t)
	if _, err := os.Stat(ran); err == nil {
		t.Error("the command was started before the first renewal")
	}
	gate.Release()
	i.exits(t, 0)
}

// Kinds of locks are those of the library.
func TestRun_Kinds(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	m := other(t, srv)
	reader, err := m.RWMutex("rw").RLock(t.Context())
	must(t, err)
	defer reader.Unlock(context.Background())
	for kind, want := range map[string]int{"-s": 0, "--kind=read": 0, "--kind=write": 124} {
		if status := start(t, urlOf(srv), "run", "rw", "-n", kind, "--", "true").wait(t); status != want {
			t.Errorf("%s beside a reader: exit status %d, want %d", kind, status, want)
		}
	}
	i := start(t, urlOf(srv), "run", "rest", "--prefix=app:", "--kind=fair", "--", "sleep", "1000")
	redistest.Eventually(t, patience, "app:rest is held", func() bool { return srv.Admin().Exists(t.Context(), "app:rest").Val() == 1 })
	must(t, i.Process.Signal(syscall.SIGTERM))
	i.wait(t)
}
