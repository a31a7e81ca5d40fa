//go:build unix

package main

import (
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/holdfast-go/holdfast/internal/redistest"
)

func urlOf(srv *redistest.Server) string {
	return fmt.Sprintf("redis://:%s@%s/0", srv.Password(), srv.Addr())
}

// urlVia leads through a proxy.
func urlVia(srv *redistest.Server, proxy *redistest.Proxy) string {
	return strings.Replace(urlOf(srv), srv.Addr(), proxy.Addr(), 1)
}

// awaitKey waits until a key has this end.
func awaitKey(t *testing.T, srv *redistest.Server, end string) {
	t.Helper()
	redistest.Eventually(t, patience, "a key "+end, func() bool {
		return slices.ContainsFunc(srv.Keys(), func(key string) bool { return strings.HasSuffix(key, end) })
	})
}

// wantAlone waits until srv has no client but the test's own: no process is left.
func wantAlone(t *testing.T, srv *redistest.Server) {
	t.Helper()
	redistest.Eventually(t, patience, "no clients", func() bool {
		list, err := srv.Admin().ClientList(t.Context()).Result()
		must(t, err)
		return strings.Count(list, "\n") == 1
	})
}

func TestDemo_OnRealRedisLeavesNothingBehind(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	must(t, srv.Admin().Set(t.Context(), "mine", "untouched", 0).Err())
	status, stdout, stderr := invoke(t, "demo", "--redis="+urlOf(srv))
	redistest.Want(t, status, 0, "exit status %d, want 0")
	wantSale(t, stdout, 10)
	if !strings.Contains(stdout, srv.Addr()) {
		t.Errorf("stdout does not name %s", srv.Addr())
	}
	if strings.Contains(stdout+stderr, srv.Password()) {
		t.Error("the output contains the password")
	}
	status, stdout, stderr = invoke(t, "demo", "--unsafe", "--redis="+urlOf(srv))
	redistest.Want(t, status, 1, "--unsafe: exit status %d, want 1")
	for _, want := range []string{"sold already!", "oversold", "THEY DISAGREE", "stock and sales disagree (as they do without a lock)", "do not add up to the 10 phones", "sales were of a phone that was sold already"} {
		if !strings.Contains(stdout+stderr, want) {
			t.Errorf("--unsafe: no %q", want)
		}
	}
	srv.RequireNoKeys(t, "mine")
}

// startLong starts a sale whose first buyer thinks for hours, or a measurement of ten minutes, and returns when its processes work.
// The command has a process group of its own, as from a shell.
func startLong(t *testing.T, srv *redistest.Server, command string) *invocation {
	t.Helper()
	args, key := []string{"demo", "--hold=5h", "--redis=" + urlOf(srv)}, ":lock"
	if command == "bench" {
		args, key = []string{"bench", "--for=10m", "--procs=1"}, ":0"
	}
	i := prepare(t, urlOf(srv), args...)
	i.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	must(t, i.Start())
	t.Cleanup(func() { _ = syscall.Kill(-i.Process.Pid, syscall.SIGKILL) })
	awaitKey(t, srv, key)
	return i
}

// A command that has started others ends with all of them, and leaves nothing in Redis.
func TestCrew_EndsByASignal(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name    string
		command string
		signal  syscall.Signal
		group   bool // to all processes, as a terminal does
		want    int
	}{
		{"Ctrl-C", "demo", syscall.SIGINT, true, 130},
		{"interrupt", "demo", syscall.SIGINT, false, 130},
		{"terminate", "demo", syscall.SIGTERM, false, 143},
		{"hang-up", "demo", syscall.SIGHUP, true, 129},
		{"bench", "bench", syscall.SIGINT, true, 130},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			srv := redistest.Start(t)
			i := startLong(t, srv, tt.command)
			pid := i.Process.Pid
			if tt.group {
				pid = -pid
			}
			must(t, syscall.Kill(pid, tt.signal))
			i.exits(t, tt.want)
			wantAlone(t, srv)
			srv.RequireNoKeys(t)
		})
	}
}

func TestDemo_ProcessesEndWithTheirParent(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	i := startLong(t, srv, "demo")
	must(t, i.Process.Kill())
	// Its output has other writers, so wait until these are gone as well.
	i.wait(t)
	wantAlone(t, srv)
	srv.RequireTTLs(t)
	for _, k := range srv.Keys() {
		if strings.HasSuffix(k, ":lock") {
			t.Errorf("%s is still held", k)
		}
	}
}

func TestDemo_FailsWhenRedisDies(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	i := newInvocation(t, "demo", "--hold=20ms", "--stock=100", "--redis="+urlOf(srv))
	must(t, i.Start())
	t.Cleanup(func() { _ = i.Process.Kill() })
	awaitKey(t, srv, ":sales")
	srv.Kill()
	i.exits(t, 1, "connection refused")
}
