package voting_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
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

// A fault is a member that goes away, one that is taken for absent though it is not, or a candidate that leaves. With
// three candidates each state stands for up to six that differ in nothing but the names of the candidates.
func TestElection_KeepsItsPromises(t *testing.T) {
	for _, of := range []struct{ candidates, faults int8 }{{2, mostFaults}, {3, mostFaults - 1}} {
		if testing.Short() {
			of.faults = min(of.faults, 4-of.candidates-1) // half a minute less
		}
		for faults := range of.faults + 1 {
			t.Run(fmt.Sprintf("%d candidates, %d faults", of.candidates, faults), func(t *testing.T) {
				searchElection("", newElection(3, of.candidates, 1, faults)).mustBeWhole(t)
			})
		}
	}
}

// The first is the rule as it was once: a round went on until the silent member was given up.
func TestElection_SeededBugsAreFound(t *testing.T) {
	for b, want := range map[bug]string{
		"a silent member is waited for": "waits for ever",
		"every vote is kept":            "waits for ever",
		"nobody looks around":           "waits for ever",
		"who leaves keeps its votes":    "not free in the end",
	} {
		t.Run(string(b), func(t *testing.T) { searchElection(b, newElection(3, 2, 1, 1)).mustFind(t, want) })
	}
	// It takes three candidates for two to stand in a queue.
	const b bug = "who leaves a queue takes those behind with it"
	t.Run(string(b), func(t *testing.T) {
		searchElection(b, newElection(3, 2, 1, 1)).mustBeWhole(t)
		searchElection(b, electedBefore(3, 1)).mustFind(t, "waits for ever")
	})
}

// electedBefore returns the election of one of some candidates that came one after the other, and wait for it.
func electedBefore(candidates, faults int8) election {
	e := newElection(3, candidates, 1, faults)
	for i := range candidates {
		e.candidates[i].begin(e.n)
		for e.candidates[i].stage != elected && !slices.Contains(e.candidates[i].with[:], inQueue) {
			for m := range e.n {
				switch e.candidates[i].with[m] {
				case requested, givingUp:
					e.runs(i, m, "")
				case yes, no:
					e.hears(i, m, "")
				}
			}
		}
	}
	return e
}

var walks = flag.Int("walks", 2000, "of TestElection_Walks")

// More members, candidates and faults than can be searched, by chance: every seed is another course of events.
func TestElection_Walks(t *testing.T) {
	const events = 200
	states := 0
	for seed := range uint64(*walks) {
		chance := rand.New(rand.NewPCG(seed, 0))
		e := newElection(3+2*int8(seed%2), 2+int8(seed%3), 2, int8(seed%7))
		var how []string
		for range events {
			all := e.steps("")
			if len(all) == 0 {
				break
			}
			next := all[chance.IntN(len(all))]
			e, how = next.to, append(how, next.what)
			if what := e.broken(""); what != "" {
				t.Fatalf("seed %d: %s:\n  %s", seed, what, strings.Join(how, "\n  "))
			}
			order := []int8{0, 1, 2, 3}[:e.c]
			chance.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
			if other := e.renamed(order); other.alike() != e.alike() {
				t.Fatalf("seed %d: with the order %v it is another state:\n  %s", seed, order, strings.Join(how, "\n  "))
			}
		}
		states += len(how)
	}
	t.Logf("%d walks, %d states", *walks, states)
}

func searchElection(b bug, first election) result {
	return search(first,
		func(e election) []step[election] { return e.steps(b) },
		func(e election) string { return e.broken(b) },
		election.alike)
}
