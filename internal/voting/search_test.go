package voting_test

import (
	"slices"
	"strings"
	"testing"
)

// step is one thing that can happen, and what comes of it.
type step[S any] struct {
	what string
	to   S
}

// result is what a search found.
type result struct {
	states int
	broken string   // the promise; "" if all were kept
	how    []string // the shortest way there
}

// bug is a way to get the protocol wrong, for the tests to find.
type bug string

// search visits every state that steps lead to, nearest first, until broken names a promise
// that one breaks. Of states that alike makes the same it visits one.
func search[S comparable](first S, steps func(S) []step[S], broken func(S) string, alike func(S) S) result {
	origins := map[S]S{first: first}
	for todo := []S{first}; len(todo) > 0; todo = todo[1:] {
		s := todo[0]
		if what := broken(s); what != "" {
			way := []S{}
			for ; s != first; s = origins[s] {
				way = append(way, s)
			}
			slices.Reverse(way)
			return result{states: len(origins), broken: what, how: retrace(first, way, steps, alike)}
		}
		for _, next := range steps(s) {
			to := alike(next.to)
			if _, seen := origins[to]; !seen {
				origins[to] = s
				todo = append(todo, to)
			}
		}
	}
	return result{states: len(origins)}
}

// retrace says what happens on a way that begins at first. The states of the way are as alike makes them, while
// those that it passes here keep the names that they have at first.
func retrace[S comparable](first S, way []S, steps func(S) []step[S], alike func(S) S) (how []string) {
	at := first
	for _, want := range way {
		for _, next := range steps(at) {
			if alike(next.to) == want {
				at, how = next.to, append(how, next.what)
				break
			}
		}
	}
	return how
}

func (r result) mustBeWhole(t *testing.T) {
	t.Helper()
	t.Logf("%d states", r.states)
	if r.broken != "" {
		t.Fatalf("%s:\n  %s", r.broken, strings.Join(r.how, "\n  "))
	}
}

func (r result) mustFind(t *testing.T, want string) {
	t.Helper()
	if !strings.Contains(r.broken, want) {
		t.Fatalf("found %q in %d states, want %q:\n  %s", r.broken, r.states, want, strings.Join(r.how, "\n  "))
	}
	t.Logf("%s, after %d steps:\n  %s", r.broken, len(r.how), strings.Join(r.how, "\n  "))
}
