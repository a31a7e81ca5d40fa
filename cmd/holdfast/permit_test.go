//go:build unix

package main

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/holdfast-go/holdfast/internal/locktest"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

// Three commands run, and the fourth waits. One is killed with its lock: its command is dead before the fourth begins, which is when its
// permit has ended. An operator frees one permit, and one command ends.
func TestRun_AtMost(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	file := filepath.Join(t.TempDir(), "lines")
	run := func(name string, flags ...string) *invocation {
		args := append([]string{"run", "job", "-N", "3", "--lease=" + lossLease.String(), "--grace=" + lossGrace}, flags...)
		return start(t, urlOf(srv), append(args, "--", "sh", "-c", leading, name, file)...)
	}
	a, left := run("a"), []*invocation{run("b"), run("c")}
	for _, name := range []string{"a", "b", "c"} {
		awaitLines(t, file, name+" works", 1)
	}
	left = append(left, run("d"))
	locktest.Queued(t, srv, "holdfast_permit_queue:{job}", 1)
	run("e", "-n").exits(t, runBusy, "job is held by sh@", " and 2 more, and 0 of 3 permits are available; not run")
	start(t, urlOf(srv), "wait", "job", "-w=100ms").exits(t, runBusy)

	must(t, a.Process.Kill())
	awaitLines(t, file, "d works", 1)
	a.wait(t) // its guard has stderr until it ends
	b, err := os.ReadFile(file)
	must(t, err)
	if _, after, _ := strings.Cut(string(b), "d begins"); strings.Contains(after, "a works") {
		t.Error("the command of the killed process works beside the fourth")
	}

	m := other(t, srv)
	info, err := m.Inspect(t.Context(), "job")
	if err != nil || len(info.Holders) != 3 {
		t.Fatalf("%+v, %v", info, err)
	}
	start(t, urlOf(srv), "unlock", "job", "--owner="+info.Holders[0].Owner).exits(t, 0, " and 2 more, and 0 of 3 permits are available; 0 wait for it", "job is freed")
	awaitLines(t, file, "[bcd] told", 1)
	if info, err := m.Inspect(t.Context(), "job"); err != nil || info.Available != 1 || len(info.Holders) != 2 {
		t.Errorf("%+v, %v", info, err)
	}
	start(t, urlOf(srv), "wait", "job").exits(t, 0)
	lost := 0
	for _, i := range left {
		_ = i.Process.Signal(syscall.SIGTERM) // one has ended, or will
		if i.wait(t) == runLost {
			lost++
		}
	}
	redistest.Want(t, lost, 1, "%d commands have lost their permits, want %d")
	if n := srv.Admin().Exists(t.Context(), "{job}:timeout", "holdfast_permit_queue:{job}").Val(); n != 0 {
		t.Errorf("%d keys are left", n)
	}
	start(t, urlOf(srv), "run", "job", "-N", "5", "--", "true").exits(t, 0, "job has 3 permits in Redis, not 5: the number in Redis counts")
}
