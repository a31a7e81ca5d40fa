//go:build unix

package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

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
