//go:build unix

package main

import (
	"context"
	"strings"
	"testing"
	"time"

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
		// No renewal comes in between: it would find a member freed, and the Redlock takes it again while it has a majority.
		members = append(members, other(t, srv).Mutex("job", holdfast.WithLease(time.Hour)))
	}
	urls := strings.Join([]string{urlOf(servers[0]), urlOf(servers[1]), urlOf(servers[2])}, " ")
	lock, err := holdfast.NewRedlock(members...)
	must(t, err)
	lease, err := lock.Lock(t.Context())
	must(t, err)
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
		expect(0, srv.Addr()+": a lock of each kind and a permit were taken", "", "doctor")
	}
	expect(runBusy, "", "job is held by ", "wait", "job", "-w=10ms")
	expect(0, "NAME  KIND   HOLDER", "", "ls")
	expect(0, "  0        3/3      ok\n", "", "ls")
	expect(0, `"servers":["`+servers[0].Addr()+`","`+servers[1].Addr()+`","`+servers[2].Addr()+`"]`, "", "ls", "-o=jsonl")
	expect(0, "1 locks are held, 0 waiters", "", "top", "--once", "--every=100ms")
	expect(0, "  3/3      ok\n", "", "top", "--once", "--every=100ms")
	expect(0, "a Redlock of 3 servers", "", "bench", "--for=200ms", "--procs=1")
	busy := start(t, urls, "run", "job", "-n", "--", "true")
	busy.exits(t, runBusy, "job is held by "+servers[0].Addr()+": hf-")

	info, err := other(t, servers[1]).Inspect(t.Context(), "job") // a Redlock has another owner id at each server
	must(t, err)
	expect(exitRefused, "", "not freed: job has other owners at 2 of 3 servers", "unlock", "job", "--owner="+info.Holders[0].Owner)
	expect(0, "  3/3      ok\n", "", "ls", "job")

	servers[0].Admin().HSet(t.Context(), "part", aliceID, 1)
	servers[1].Admin().HSet(t.Context(), "part", bobID, 1)
	expect(runBusy, "", "part is held by ", "wait", "part", "-w=10ms") // it is free at one server of three
	expect(0, "  2/3      no TTL\n", "", "ls", "part")
	servers[0].Admin().HSet(t.Context(), "stray", aliceID, 1)
	servers[0].Admin().PExpire(t.Context(), "stray", time.Minute)
	expect(0, "  1/3      no majority\n", "", "ls", "stray")
	expect(0, "stray\n", "", "ls", "stray", "--stale", "-o=name")
	expect(0, "", "part is held by ", "unlock", "part", "--owner="+aliceID, "--owner="+bobID)
	expect(0, "", "", "wait", "part")

	servers[2].Kill()
	expect(0, "job at "+servers[0].Addr(), servers[2].Addr()+": ", "inspect", "job")
	expect(0, "  2/3      ok\n", "", "ls", "job")
	expect(0, "", "", "run", "free", "-n", "--", "true")
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
	expect(runFailed, "", "connection refused", "run", "free", "-n", "--", "true")
	_ = lease.Unlock(context.Background())
}

// What the servers of a Redlock know of a lock is put together: who holds it at most of them, and for how long a majority does.
func TestMerge(t *testing.T) {
	t.Parallel()
	const lease = 30 * time.Second
	shop := &Process{App: "shop", Host: "web-3", PID: 7}
	part := func(owner string, p *Process, ttl time.Duration) look {
		l := look{Name: "job", Kind: "mutex", Held: true, Holders: []lookHolder{{Owner: owner, Holdfast: true, TTL: milliseconds(ttl), Process: p}}, TTL: milliseconds(ttl), Token: 7}
		return l
	}
	sites := []*site{{name: "a"}, {name: "b"}, {name: "c"}}
	for name, tt := range map[string]struct {
		parts  [3]*look // nil: nothing is known of it there
		holder string
		ttl    time.Duration // -1: none
		state  string
		held   bool
	}{
		"one process at all":        {[3]*look{new(part("hf-1:1", shop, 29*time.Second)), new(part("hf-2:1", shop, 28*time.Second)), new(part("hf-3:1", shop, 27*time.Second))}, "shop@web-3/7", 28 * time.Second, stateOK, true},
		"a majority is not renewed": {[3]*look{new(part("hf-1:1", shop, 29*time.Second)), new(part("hf-2:1", shop, 4*time.Second)), new(part("hf-3:1", shop, 3*time.Second))}, "shop@web-3/7", 4 * time.Second, stateExpiring, true},
		"another at one":            {[3]*look{new(part("hf-9:1", nil, 29*time.Second)), new(part("hf-2:1", shop, 28*time.Second)), new(part("hf-3:1", shop, 27*time.Second))}, "shop@web-3/7 (+1)", 28 * time.Second, stateOK, true},
		"a rest at one":             {[3]*look{nil, new(part("hf-2:1", shop, 28*time.Second)), nil}, "shop@web-3/7", 28 * time.Second, stateMinority, false},
		"no TTL at one":             {[3]*look{new(part("hf-1:1", shop, -1)), new(part("hf-2:1", shop, 28*time.Second)), new(part("hf-3:1", shop, 27*time.Second))}, "shop@web-3/7", -1, stateNoTTL, true},
	} {
		found := make([][]look, len(sites))
		for i, p := range tt.parts {
			if p != nil {
				found[i] = []look{*p}
			}
		}
		all := merge(found, sites, lease)
		if len(all) != 1 {
			t.Fatalf("%s: %+v", name, all)
		}
		l := all[0]
		if l.holder(false) != tt.holder || l.TTL != milliseconds(tt.ttl) || l.State != tt.state || l.Held != tt.held || l.Token != 0 {
			t.Errorf("%s: %q, %d ms, %q, held %t", name, l.holder(false), l.TTL, l.State, l.Held)
		}
	}
}
