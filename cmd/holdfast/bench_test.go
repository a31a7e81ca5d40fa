//go:build unix

package main

import (
	"net"
	"regexp"
	"slices"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/redistest"
)

// A measurement leaves nothing behind, and the figures fit together.
func TestBench(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	i := start(t, urlOf(srv), "bench", "--for=300ms", "--procs=2")
	i.exits(t, 0)
	for _, want := range []string{`(?m)^uncontended +[1-9]\d* pairs/s +2 processes`, `(?m)^remote hand-off +[1-9]\d* µs`, `(?m)^commands +2\.\d\d `, `█ `} {
		if !regexp.MustCompile(want).MatchString(i.stdout.String()) {
			t.Errorf("stdout has no %q", want)
		}
	}
	if want := "holdfast: uncontended pairs, for 300ms\nholdfast: remote hand-offs, for 300ms\n"; i.stderr.String() != want {
		t.Errorf("stderr is %q", &i.stderr)
	}
	wantAlone(t, srv)
	srv.RequireNoKeys(t)
}

func TestBench_Refuses(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	for range mostClients {
		c, err := net.Dial("tcp", srv.Addr())
		must(t, err)
		defer c.Close()
	}
	redistest.Eventually(t, patience, "the server has its clients", func() bool {
		return readFacts(srv.Admin().Info(t.Context(), "clients").Val()).number("connected_clients") > mostClients
	})
	i := start(t, urlOf(srv), "bench")
	if status := i.wait(t); status != exitRefused || !regexp.MustCompile(`not measured: the server has 10\d\d clients`).MatchString(i.stderr.String()) {
		t.Errorf("exit status %d, want %d", status, exitRefused)
	}
	redistest.WantMost(t, srv.CommandCalls("evalsha", "eval"), 0, "%d scripts were called")
	i = start(t, urlOf(srv), "bench", "--force", "--for=100ms", "--procs=1")
	redistest.Want(t, i.wait(t), 0, "--force: exit status %d")
}

func TestHandoffs(t *testing.T) {
	t.Parallel()
	// a: 10-20, 50-60, 70-80; b: 30-40, 95-99. The turn at 70 follows one of the same process.
	a := []turn{{10, 20}, {50, 60}, {70, 80}}
	b := []turn{{30, 40}, {95, 99}}
	want := []time.Duration{10, 10, 15}
	for range 2 {
		if got := handoffs(a, b); !slices.Equal(got, want) {
			t.Errorf("%v, want %v", got, want)
		}
		a, b = b, a
	}
	if got := handoffs([]turn{{10, 20}}, []turn{{15, 30}}); len(got) > 0 {
		t.Errorf("with a clock that was set back: %v", got)
	}
}
