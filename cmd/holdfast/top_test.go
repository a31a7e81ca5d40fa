//go:build unix

package main

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/locktest"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

// What several looks at a lock tell of it.
func TestTop_AgeAndHandoffs(t *testing.T) {
	t.Parallel()
	begin := time.Now()
	at := func(d time.Duration) time.Time { return begin.Add(d) }
	of := func(name, owner string, token uint64) look {
		return look{Name: name, Holders: []lookHolder{{Owner: owner}}, Token: token}
	}
	s := newSightings()
	s.add([]look{of("token", "a", 10), of("plain", "a", 0), of("gone", "a", 0)}, at(0))
	s.add([]look{of("token", "b", 11), of("plain", "b", 0)}, at(time.Second))
	got := s.add([]look{of("token", "b", 300), of("plain", "b", 0), of("gone", "a", 0)}, at(2*time.Second))
	for i, want := range []struct{ age, handoffs string }{{"1s", "~1.5"}, {"1s", "≥0.5"}, {"0s", "-"}} {
		if g := got[i]; g.ageText() != want.age || g.handoffsText() != want.handoffs {
			t.Errorf("%s: age %s, hand-offs %s, want %+v", g.Name, g.ageText(), g.handoffsText(), want)
		}
	}
	for n := range 20 {
		got = s.add([]look{of("token", "b", 300)}, at(time.Duration(3+n)*time.Second))
	}
	if g := got[0]; g.handoffsText() != "0.0" || g.ageText() != "21s" {
		t.Errorf("when it is quiet again: %s, %s", g.handoffsText(), g.ageText())
	}
	redistest.Want(t, len(s.locks), 1, "%d locks are remembered")
}

// A remote hand-off reserves 128 tokens, and is one.
func TestTop_HandoffsWithTokens(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	a, b := other(t, srv), other(t, srv)
	s, begin := newSightings(), time.Now()
	see := func(at time.Duration) string {
		info, err := a.Inspect(t.Context(), "job")
		must(t, err)
		return s.add([]look{newLook(info, time.Minute)}, begin.Add(at))[0].handoffsText()
	}
	held, err := a.Mutex("job", holdfast.WithFencing()).Lock(t.Context())
	must(t, err)
	see(0)
	for _, m := range []*holdfast.Manager{b, a, b} {
		next := m.Mutex("job", holdfast.WithFencing()).LockAsync(t.Context())
		locktest.Queued(t, srv, "redisson_lock_queue:{job}", 1)
		must(t, held.Unlock(t.Context()))
		held = locktest.Granted(t, next)
	}
	redistest.Want(t, see(time.Second), "~3.0", "three hand-offs in a second: %s")
}

func TestTop_Sorts(t *testing.T) {
	t.Parallel()
	one := func(name string, waiting int, handoffs float64, age time.Duration, ttl int64, state string) sighting {
		return sighting{look: look{Name: name, Waiting: waiting, TTL: ttl, State: state}, handoffs: handoffs, age: age}
	}
	locks := []sighting{one("a", 1, 0.5, 9, 300, stateOK), one("b", 2, 0.1, 1, -1, stateNoTTL), one("c", 0, 7, 3, 100, stateExpiring)}
	for _, tt := range []struct{ sort, filter, want string }{
		{sortWaiting, filterAll, "b a c"}, {sortHandoffs, filterAll, "c a b"}, {sortAge, filterAll, "a c b"}, {sortTTL, filterAll, "c a b"},
		{sortWaiting, filterWaiting, "b a"}, {sortWaiting, filterStale, "b c"},
	} {
		top := &top{looks: locks, sort: tt.sort, filter: tt.filter}
		var names []string
		for _, l := range top.shown() {
			names = append(names, l.Name)
		}
		if got := strings.Join(names, " "); got != tt.want {
			t.Errorf("by %s, %s: %s, want %s", tt.sort, tt.filter, got, tt.want)
		}
		for line := range strings.Lines(top.frame(20, 6)) {
			if n := len([]rune(line)) - 1; n > 20 {
				t.Errorf("a line of %d runes on a screen of 20: %q", n, line)
			}
		}
		redistest.Want(t, strings.Count(top.frame(20, 5), "\n"), 5, "%d lines on a screen of 5")
	}
	if !slices.Equal([]string{next(sorts, sortTTL), next(filters, filterAll)}, []string{sortWaiting, filterWaiting}) {
		t.Error("keys do not go round")
	}
}
