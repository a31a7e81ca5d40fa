//go:build unix

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/redistest"
)

// A second run finds the lock taken although the command of the first has ended, and the process of the first has left nothing
// else behind.
func TestRun_HoldAtLeast(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	first := start(t, urlOf(srv), "run", "job", "--hold-at-least=1h", "--", "true")
	if status := first.wait(t); status != 0 {
		t.Fatalf("exit status %d: %s", status, &first.stderr)
	}
	if keys, ttl := srv.Keys(), srv.Admin().PTTL(t.Context(), "job").Val(); len(keys) != 1 || ttl < 50*time.Minute || ttl > time.Hour {
		t.Errorf("the keys are %q, and the TTL is %v", keys, ttl)
	}
	second := start(t, urlOf(srv), "run", "job", "-n", "-E", "75", "--", "true")
	second.exits(t, 75, "job is held by ")
}

func TestAppName(t *testing.T) {
	for command, want := range map[string]string{
		"./report.sh": "report", "/usr/bin/rsync": "rsync", ".hidden": ".hidden", "a.b.c": "a.b", "\xff": "holdfast",
		strings.Repeat("é", 80): strings.Repeat("é", 50),
	} {
		if got := appName(command); got != want {
			t.Errorf("%q: %q, want %q", command, got, want)
		}
	}
}

// The script that docs/COMMAND.md shows runs a job once per day, however many hosts start it, and whenever they do. If the job
// fails, the next host runs it.
func TestRun_OncePerDay(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/COMMAND.md")
	must(t, err)
	_, script, found := strings.Cut(string(page), "```sh\n# nightly.sh")
	script, _, closed := strings.Cut(script, "```")
	if !found || !closed {
		t.Fatal("docs/COMMAND.md has no nightly.sh")
	}
	srv, dir := redistest.Start(t), t.TempDir()
	write := func(name, text string) {
		must(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o700))
	}
	write("nightly.sh", "#"+script)
	write("date", "#!/bin/sh\ncat today\n")
	write("today", "2026-11-25\n")
	write("report.sh", "#!/bin/sh\ncat today >> ran\nif mkdir tried 2>/dev/null; then exit 3; fi\n") // the first attempt fails
	host := func() *invocation {
		i := newInvocation(t, "run", "nightly", "--", "sh", "nightly.sh")
		i.Dir, i.Env = dir, append(i.Env, "HOLDFAST_REDIS="+strings.Replace(urlOf(srv), "//:", "//default:", 1), "PATH="+dir+":"+os.Getenv("PATH"))
		must(t, i.Start())
		return i
	}
	failed := 0
	all := []*invocation{host(), host(), host()}
	for _, i := range all {
		switch status := i.wait(t); status {
		case 0:
		case 3:
			failed++
		default:
			t.Errorf("exit status %d", status)
		}
	}
	redistest.Want(t, failed, 1, "%d hosts failed, want the first")
	if status := host().wait(t); status != 0 { // late
		t.Errorf("exit status %d", status)
	}
	write("today", "2026-11-26\n")
	host().exits(t, 0)
	ran, err := os.ReadFile(filepath.Join(dir, "ran"))
	if want := "2026-11-25\n2026-11-25\n2026-11-26\n"; string(ran) != want || err != nil {
		t.Errorf("the job ran on %q, want the first failed attempt and once per day; %v", ran, err)
	}
}
