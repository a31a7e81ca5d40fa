//go:build unix

package main

import (
	"context"
	"testing"

	"github.com/holdfast-go/holdfast/internal/redistest"
)

// With --owner only that owner's lock is freed, without a question.
func TestUnlock_OfAnOwner(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	for _, field := range []string{aliceID, aliceID + ":write"} {
		must(t, srv.Admin().HSet(t.Context(), "job", field, 1).Err())
		if field != aliceID {
			srv.Admin().HSet(t.Context(), "job", "mode", "write")
		}
		if status := start(t, urlOf(srv), "unlock", "job", "--owner="+bobID).wait(t); status != exitRefused || srv.Admin().Exists(t.Context(), "job").Val() != 1 {
			t.Errorf("%s: of another owner: exit status %d, want %d, and the lock kept", field, status, exitRefused)
		}
		if status := start(t, urlOf(srv), "unlock", "job", "--owner="+aliceID).wait(t); status != 0 || srv.Admin().Exists(t.Context(), "job").Val() != 0 {
			t.Errorf("%s: of the owner: exit status %d, want 0, and the lock freed", field, status)
		}
	}
}

func TestWait_EndsWithTheRelease(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	lease := hold(t, srv, "job")
	srv.ResetStats()
	i := start(t, urlOf(srv), "wait", "job")
	redistest.Eventually(t, patience, "it has looked", func() bool { return srv.CommandCalls("evalsha", "eval") > 0 })
	must(t, lease.Unlock(context.Background()))
	i.exits(t, 0)
}

// A key of an application is never free for a lock.
func TestWait_ForAKeyOfAnApplication(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	srv.Admin().Set(t.Context(), "app", 1, 0)
	i := start(t, urlOf(srv), "wait", "app")
	i.exits(t, runFailed, "app: the key holds no lock")
}
