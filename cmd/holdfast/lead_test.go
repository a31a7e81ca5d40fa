//go:build unix

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/locktest"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

// leading is a command that writes into the file $1 that it begins, with the number of its term, that it works, every ten milliseconds,
// and that it was told to end.
const leading = `trap 'echo "$0 told" >>"$1"; exit 7' TERM; echo "$0 begins $HOLDFAST_TOKEN" >>"$1"; while :; do echo "$0 works" >>"$1"; sleep 0.01; done`

// lead starts a candidate whose command writes to file under its name.
func lead(t *testing.T, url, file, name string, flags ...string) *invocation {
	t.Helper()
	args := append([]string{"lead", "seat", "--value=" + name}, flags...)
	return start(t, url, append(args, "--", "sh", "-c", leading, name, file)...)
}

// awaitLines waits until file has a line of this pattern for the nth time, and returns its lines.
func awaitLines(t *testing.T, file, pattern string, n int) []string {
	t.Helper()
	line := regexp.MustCompile(`(?m)^` + pattern + `$`)
	text := ""
	redistest.Eventually(t, patience, fmt.Sprintf("%d lines %q", n, pattern), func() bool {
		b, _ := os.ReadFile(file)
		text = string(b)
		return len(line.FindAllString(text, -1)) >= n
	})
	return strings.Split(strings.TrimSpace(text), "\n")
}

// wantTurns fails unless the lines of a command all come before those of the next one, and the numbers of their terms grow.
func wantTurns(t *testing.T, file string, names ...string) {
	t.Helper()
	var turns []string
	last := 0
	b, err := os.ReadFile(file)
	must(t, err)
	for _, l := range strings.Split(strings.TrimSpace(string(b)), "\n") {
		words := strings.Fields(l)
		if words[1] == "begins" {
			turns = append(turns, words[0])
			if n := number(t, words[2]); n <= last {
				t.Errorf("term %d follows %d", n, last)
			} else {
				last = n
			}
		} else if len(turns) == 0 || turns[len(turns)-1] != words[0] {
			t.Errorf("%q, while %v lead", l, turns)
		}
	}
	if strings.Join(turns, " ") != strings.Join(names, " ") {
		t.Errorf("%v have led, want %v", turns, names)
	}
}

// queued waits until a candidate stands in the queue.
func queued(t *testing.T, srv *redistest.Server) {
	t.Helper()
	locktest.Queued(t, srv, "redisson_lock_queue:{seat}", 1)
}

// leaderIs waits until value is what a leader says of itself.
func leaderIs(t *testing.T, m *holdfast.Manager, value string) {
	t.Helper()
	redistest.Eventually(t, patience, value+" leads", func() bool {
		l, err := m.Election("seat").Leader(t.Context())
		return err == nil && l.Value == value
	})
}

// TERM hands over at once: the next one leads long before the lease of the first would have ended.
func TestLead_HandsOver(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	m, file := other(t, srv), filepath.Join(t.TempDir(), "lines")
	a := lead(t, urlOf(srv), file, "a", "--lease=10m")
	awaitLines(t, file, "a works", 1)
	leaderIs(t, m, "a")
	b := lead(t, urlOf(srv), file, "b", "--lease=10m")
	queued(t, srv)

	i := start(t, urlOf(srv), "inspect", "seat", "--lease=10m")
	i.wait(t)
	if !regexp.MustCompile(`\n  leader   in term [0-9]+, says a\n`).MatchString(i.stdout.String()) {
		t.Errorf("inspect: %q", &i.stdout)
	}
	must(t, a.Process.Signal(syscall.SIGTERM))
	a.exits(t, 7)
	awaitLines(t, file, "b works", 1)
	leaderIs(t, m, "b")
	must(t, b.Process.Signal(syscall.SIGTERM))
	b.exits(t, 7)
	wantTurns(t, file, "a", "b")
	if l, err := m.Election("seat").Leader(t.Context()); err == nil {
		t.Errorf("after all have ended, the leader is %+v", l)
	}
	srv.RequireNoKeys(t, "redisson_lock_token:{seat}", "holdfast_leader:{seat}")
}

// The leader is killed: its command is dead before another process leads, which is when the lease has ended.
func TestLead_Killed(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	m, file := other(t, srv), filepath.Join(t.TempDir(), "lines")
	a := lead(t, urlOf(srv), file, "a", "--lease="+lossLease.String(), "--grace="+lossGrace)
	awaitLines(t, file, "a works", 1)
	b := lead(t, urlOf(srv), file, "b", "--lease="+lossLease.String(), "--grace="+lossGrace)
	queued(t, srv)
	must(t, a.Process.Kill())
	awaitLines(t, file, "b works", 1)
	leaderIs(t, m, "b")
	a.wait(t) // its guard has stderr until it ends
	must(t, b.Process.Signal(syscall.SIGTERM))
	b.exits(t, 7)
	wantTurns(t, file, "a", "b")
}

// A leader that cannot reach Redis ends its command before another process leads, and leads again when it can and its turn comes. No
// signal that it got meanwhile ends it but those that end programs, and the next command finds the same signals ignored as the first.
func TestLead_CutOff(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	proxy := srv.Proxy(t)
	file := filepath.Join(t.TempDir(), "lines")
	ignored := file + ".ignored"
	const asks = `grep SigIgn /proc/self/status >>"$1.ignored"; `
	a := start(t, urlVia(srv, proxy), "lead", "seat", "--value=a", "--lease="+lossLease.String(), "--grace="+lossGrace, "--",
		"sh", "-c", asks+leading, "a", file)
	awaitLines(t, file, "a works", 1)
	b := lead(t, urlOf(srv), file, "b")
	queued(t, srv)
	proxy.BlackHole(true)
	awaitLines(t, file, "b works", 1)
	must(t, a.Process.Signal(syscall.SIGWINCH))
	proxy.BlackHole(false)
	queued(t, srv)
	must(t, b.Process.Signal(syscall.SIGTERM))
	b.exits(t, 7)
	awaitLines(t, file, "a begins .*", 2)
	must(t, a.Process.Signal(syscall.SIGTERM))
	a.exits(t, 7, "the command is told to end", "seat: this process leads no more; it waits for its next term")
	wantTurns(t, file, "a", "b", "a")
	if b, err := os.ReadFile(ignored); err == nil { // on Linux
		if masks := strings.Fields(string(b)); len(masks) == 4 && masks[1] != masks[3] {
			t.Errorf("the commands ignore the signals %q", masks)
		}
	}
}

// Redis stops: the command is told to end, and runs again when Redis is back. A signal ends the wait for that.
func TestLead_RedisStops(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t, redistest.WithAOF())
	file := filepath.Join(t.TempDir(), "lines")
	a := lead(t, urlOf(srv), file, "a", "--lease=3s", "--grace="+lossGrace)
	awaitLines(t, file, "a works", 1)
	srv.Kill()
	awaitLines(t, file, "a told", 1)
	srv.Restart()
	awaitLines(t, file, "a begins .*", 2)
	srv.Kill()
	awaitLines(t, file, "a told", 2)
	redistest.Eventually(t, patience, "nothing works", func() bool {
		before, err := os.ReadFile(file)
		must(t, err)
		time.Sleep(100 * time.Millisecond) // a command that is alive writes within this time
		after, err := os.ReadFile(file)
		must(t, err)
		return len(before) == len(after)
	})
	must(t, a.Process.Signal(syscall.SIGTERM))
	if status := a.wait(t); status != 143 && status != 121 { // 121: it came before the command's processes were gone
		t.Errorf("exit status %d", status)
	}
	wantTurns(t, file, "a", "a")
}

// A term that is lost when a signal has told the command to end is the last one.
func TestLead_ToldBeforeTheLoss(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	file := filepath.Join(t.TempDir(), "lines")
	a := start(t, urlOf(srv), "lead", "seat", "--lease=3s", "--", "sh", "-c", `trap 'echo told >>"$1"' TERM; while :; do echo works >>"$1"; sleep 0.01; done`, "sh", file)
	awaitLines(t, file, "works", 1)
	must(t, a.Process.Signal(syscall.SIGTERM))
	awaitLines(t, file, "told", 1)
	must(t, srv.Admin().Del(t.Context(), "seat").Err())
	a.exits(t, 121)
}
