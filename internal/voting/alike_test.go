package voting_test

import "slices"

// mark is what tells a candidate from others: what it knows itself, and what members know of it.
type mark struct {
	contestant
	owner [mostMembers]bool
	place [mostMembers]int8 // in the queue, from 1; 0: none
}

// alike returns e with its candidates renamed, in an order that only their marks decide. The rule does not look
// at the names of candidates, so what can happen after e can happen after each state that differs in them alone.
func (e election) alike() election {
	var marks [mostCandidates]mark
	var from [mostCandidates]int8
	for i := range e.c {
		from[i] = i
		marks[i].contestant = e.candidates[i]
	}
	for m, v := range e.members[:e.n] {
		if v.owner >= 0 {
			marks[v.owner].owner[m] = true
		}
		for place, i := range v.queue[:v.length] {
			marks[i].place[m] = int8(place) + 1
		}
	}
	order := from[:e.c]
	slices.SortFunc(order, func(i, j int8) int { return marks[i].compare(&marks[j]) })
	return e.renamed(order)
}

// renamed returns e with its candidates in another order.
func (e election) renamed(order []int8) election {
	var to [mostCandidates]int8
	renamed := e
	for i, was := range order {
		to[was] = int8(i)
		renamed.candidates[i] = e.candidates[was]
	}
	for m := range e.n {
		v := &renamed.members[m]
		if v.owner >= 0 {
			v.owner = to[v.owner]
		}
		for k, i := range v.queue[:v.length] {
			v.queue[k] = to[i]
		}
	}
	return renamed
}

// compare orders marks somehow, and returns 0 only for those that are the same.
func (a *mark) compare(b *mark) int {
	x, y := a.bytes(), b.bytes()
	return slices.Compare(x[:], y[:])
}

func (a *mark) bytes() (all [3 + 2*mostMembers]byte) {
	all[0], all[1], all[2] = byte(a.stage), byte(a.at), byte(a.turns)
	for m := range mostMembers {
		flags := byte(a.place[m])
		for bit, set := range [...]bool{a.late[m], a.vain[m], a.owner[m]} {
			if set {
				flags |= 8 << bit
			}
		}
		all[3+2*m], all[4+2*m] = byte(a.with[m]), flags
	}
	return all
}
