//go:build unix

package main

import (
	"testing"

	"github.com/holdfast-go/holdfast/internal/redistest"
)

// startClosed starts the command with a redirection of the shell, such as <&-.
func startClosed(t *testing.T, url, redirection string, args ...string) *invocation {
	t.Helper()
	i := prepare(t, url, args...)
	i.Args = append([]string{"sh", "-c", `exec "$0" "$@" ` + redirection, i.Path}, args...)
	i.Path = "/bin/sh"
	must(t, i.Start())
	return i
}

// With closed streams, as some daemons start programs, the command reads nothing instead of what a connection to Redis
// says, and keeps its lock.
func TestRun_ClosedStreams(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	for _, redirection := range []string{"<&-", ">&-", "2>&-", "<&- >&- 2>&-"} {
		t.Run(redirection, func(t *testing.T) {
			file := t.TempDir() + "/result"
			i := startClosed(t, urlOf(srv), redirection, "run", "job", "--", "sh", "-c", `cat >"$1"; printf '%s\n' "end $HOLDFAST_LOCK" >>"$1"; exit 7`, "sh", file)
			i.exits(t, 7)
			if got, want := awaitFile(t, file), "end job\n"; got != want { // the stdin of a test is empty
				t.Errorf("the command has read and written %q, want %q", got, want)
			}
		})
	}
	srv.RequireNoKeys(t)
	hold(t, srv, "held")
	redistest.Want(t, startClosed(t, urlOf(srv), "<&-", "unlock", "held").wait(t), exitRefused, "unlock: exit status %d, want %d")
	if status := startClosed(t, urlOf(srv), ">&-", "ls").wait(t); status != 0 && status != exitFailed {
		t.Errorf("ls: exit status %d", status)
	}
	i := startClosed(t, urlOf(srv), "<&-", "top")
	if status := i.wait(t); status != 0 || i.stdout.Len() == 0 {
		t.Errorf("top: exit status %d", status)
	}
}
