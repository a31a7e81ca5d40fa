//go:build unix

package main

import (
	"context"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/locktest"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

// prepare returns the command for a Redis, to be started; it is killed at the end of the test.
func prepare(t *testing.T, url string, args ...string) *invocation {
	t.Helper()
	i := newInvocation(t, args...)
	i.Env = append(i.Env, "HOLDFAST_REDIS="+url)
	t.Cleanup(func() {
		if i.Process != nil {
			_ = i.Process.Signal(syscall.SIGCONT)
			_ = i.Process.Kill()
		}
	})
	return i
}

// start starts the command.
func start(t *testing.T, url string, args ...string) *invocation {
	t.Helper()
	i := prepare(t, url, args...)
	must(t, i.Start())
	return i
}

// other is another process's manager.
func other(t *testing.T, srv *redistest.Server, opts ...holdfast.Option) *holdfast.Manager {
	t.Helper()
	return locktest.ManagerAsIs(t, srv.Client(t), opts...)
}

// hold locks the mutex name until the test ends.
func hold(t *testing.T, srv *redistest.Server, name string) *holdfast.Lease {
	t.Helper()
	lease := locktest.MustLock(t, other(t, srv).Mutex(name))
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

// The command has the streams and the environment, and no owner id.
func TestRun_StreamsAndEnvironment(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	i := prepare(t, urlOf(srv), "run", "job", "--fencing", "-v", "--", "sh", "-c", `cat; env; echo mistake >&2; read line; echo "end: $?"`)
	i.Env = append(i.Env, tokenEnv+"=77", lockEnv+"=outer")
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
	i := start(t, urlVia(srv, proxy), "run", "job", "--", "touch", ran)
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

// A command that waits because of Redis says why.
func TestRun_SaysWhyItWaits(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	do(t, srv, "config", "set", "maxmemory", "1")
	file := filepath.Join(t.TempDir(), "stderr")
	stderr, err := os.Create(file)
	must(t, err)
	defer stderr.Close()
	i := prepare(t, urlOf(srv), "run", "job", "--", "true")
	i.Stderr = stderr
	must(t, i.Start())
	said := awaitFile(t, file)
	do(t, srv, "config", "set", "maxmemory", "0")
	i.exits(t, 0)
	if want := `holdfast: still waiting: redis unavailable: "job": OOM `; !strings.HasPrefix(said, want) || said != awaitFile(t, file) {
		t.Errorf("said %q, and in the end %q; want a line with %q", said, awaitFile(t, file), want)
	}
}
