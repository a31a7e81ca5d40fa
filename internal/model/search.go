// Package model is the hand-over protocol in small, in two halves, for its tests to visit
// every state of: handover is what happens between processes, whatever happens to them, and
// entry what one process does for its callers. And it is a Redlock in small: election is what
// happens between candidates and members.
package model

import "slices"

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
// that one breaks.
func search[S comparable](first S, steps func(S) []step[S], broken func(S) string) result {
	type origin struct {
		from S
		what string
	}
	origins := map[S]origin{first: {}}
	for todo := []S{first}; len(todo) > 0; todo = todo[1:] {
		s := todo[0]
		if what := broken(s); what != "" {
			r := result{states: len(origins), broken: what}
			for ; s != first; s = origins[s].from {
				r.how = append(r.how, origins[s].what)
			}
			slices.Reverse(r.how)
			return r
		}
		for _, next := range steps(s) {
			if _, seen := origins[next.to]; !seen {
				origins[next.to] = origin{s, next.what}
				todo = append(todo, next.to)
			}
		}
	}
	return result{states: len(origins)}
}
