//go:build unix

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/internal/redistest"
)

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
