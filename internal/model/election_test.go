package model

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

func TestElection_KeepsItsPromises(t *testing.T) {
	for faults := range mostFaults + 1 {
		t.Run(fmt.Sprintf("two candidates, %d faults", faults), func(t *testing.T) {
			searchElection("", newElection(3, 2, 1, faults)).mustBeWhole(t)
		})
	}
}

// The first is the rule as it was once: a round went on until the silent member was given up.
func TestElection_SeededBugsAreFound(t *testing.T) {
	for b, want := range map[bug]string{
		"a silent member is waited for": "waits for ever",
		"every vote is kept":            "waits for ever",
		"nobody looks around":           "waits for ever",
	} {
		t.Run(string(b), func(t *testing.T) { searchElection(b, newElection(3, 2, 1, 1)).mustFind(t, want) })
	}
}

// More members and candidates than can be searched, by chance: every seed is another course of events.
func TestElection_Walks(t *testing.T) {
	const seeds, events = 60, 150
	for seed := range uint64(seeds) {
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
		}
	}
}

func searchElection(b bug, first election) result {
	return search(first,
		func(e election) []step[election] { return e.steps(b) },
		func(e election) string { return e.broken(b) })
}
