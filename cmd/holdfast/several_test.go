//go:build unix

package main

import (
	"context"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

// A Redlock's members are asked and freed together, and a minority of them may be down.
func TestSeveral(t *testing.T) {
	t.Parallel()
	var servers []*redistest.Server
	var members []holdfast.Locker
	for range 3 {
		srv := redistest.Start(t)
		servers = append(servers, srv)
		members = append(members, other(t, srv).Mutex("job"))
	}
	urls := strings.Join([]string{urlOf(servers[0]), urlOf(servers[1]), urlOf(servers[2])}, " ")
	lock, err := holdfast.NewRedlock(members...)
	if err != nil {
		t.Fatal(err)
	}
	lease, err := lock.Lock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	redistest.Eventually(t, patience, "all members are held", func() bool {
		n := int64(0)
		for _, srv := range servers {
			n += srv.Admin().Exists(t.Context(), "job").Val()
		}
		return n == 3
	})
	expect := func(status int, stdout, stderr string, args ...string) {
		t.Helper()
		i := start(t, urls, args...)
		if got := i.wait(t); got != status || !strings.Contains(i.stdout.String(), stdout) || !strings.Contains(i.stderr.String(), stderr) {
			t.Errorf("%q: exit status %d, want %d, with %q and %q", args, got, status, stdout, stderr)
		}
	}
	for _, srv := range servers {
		expect(0, "job at "+srv.Addr()+"\n  kind     mutex\n", "", "inspect", "job")
		expect(0, `"server":"`+srv.Addr()+`"`, "", "inspect", "job", "-o=jsonl")
		expect(0, srv.Addr()+": a lock of each kind was taken", "", "doctor")
	}
	expect(runBusy, "", "job is held by ", "wait", "job", "-w=10ms")
	expect(exitUsage, "", "this command asks one Redis", "ls")
	expect(exitUsage, "", "this command asks one Redis", "top", "--once")
	expect(exitUsage, "", "this command asks one Redis", "bench")

	for _, srv := range servers[:2] {
		srv.Admin().HSet(t.Context(), "part", aliceID, 1)
	}
	expect(runBusy, "", "part is held by ", "wait", "part", "-w=10ms") // it is free at one server of three
	expect(0, "", "part is held by ", "unlock", "part", "--owner="+aliceID)
	expect(0, "", "", "wait", "part")

	servers[2].Kill()
	expect(0, "job at "+servers[0].Addr(), servers[2].Addr()+": ", "inspect", "job")
	expect(exitNo, "FAIL  HF101 server              "+servers[2].Addr()+": ", "", "doctor")
	expect(exitRefused, "", "without a terminal", "unlock", "job")
	expect(0, "", servers[0].Addr()+": job is held by ", "unlock", "job", "--force")
	for _, srv := range servers[:2] {
		if srv.Admin().Exists(t.Context(), "job").Val() != 0 {
			t.Errorf("%s still has the lock", srv.Addr())
		}
	}
	expect(exitNo, "", "job is free", "unlock", "job", "--force")
	expect(exitNo, "", "", "inspect", "job")
	expect(0, "", "", "wait", "job")
	servers[1].Kill()
	expect(exitUnreachable, "", "cannot be reached", "inspect", "job")
	_ = lease.Unlock(context.Background())
}
