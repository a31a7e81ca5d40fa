//go:build unix

package main

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast"
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
	srv.Admin().Set(t.Context(), "app", "text", 0)
	i := start(t, urlOf(srv), "wait", "app")
	i.exits(t, runFailed, "app: the key holds no lock")
}

// A Redlock has another owner id at each server. With the ids of all, and not with one, unlock frees it.
func TestUnlock_OwnersOfARedlock(t *testing.T) {
	t.Parallel()
	var urls, owners []string
	var members []holdfast.Locker
	var managers []*holdfast.Manager
	for range 3 {
		srv := redistest.Start(t)
		m := other(t, srv)
		urls, managers, members = append(urls, urlOf(srv)), append(managers, m), append(members, m.Mutex("job"))
	}
	lock, err := holdfast.NewRedlock(members...)
	must(t, err)
	lease, err := lock.Lock(t.Context())
	must(t, err)
	ids := func() (ids []string) {
		for _, m := range managers {
			info, err := m.Inspect(t.Context(), "job")
			must(t, err)
			for _, h := range info.Holders {
				ids = append(ids, h.Owner)
			}
		}
		return ids
	}
	redistest.Eventually(t, patience, "all members are held", func() bool { owners = ids(); return len(owners) == 3 })
	unlock := func(args ...string) (status int, said string) {
		i := start(t, strings.Join(urls, " "), append([]string{"unlock", "job"}, args...)...)
		return i.wait(t), i.stderr.String()
	}
	if status, said := unlock("--owner=" + owners[1]); status != exitRefused || !strings.Contains(said, "not freed: job has other owners at 2 of 3 servers") || !slices.Equal(ids(), owners) {
		t.Errorf("of one owner: exit status %d, left are %q: %s", status, ids(), said)
	}
	if status, said := unlock("--owner="+owners[0], "--owner="+owners[1], "--owner="+owners[2]); status != 0 || !strings.Contains(said, "job is freed") {
		t.Errorf("of all: exit status %d: %s", status, said)
	}
	<-lease.Done()
}
