package voting_test

import (
	"slices"
	"time"

	"github.com/holdfast-go/holdfast/internal/voting"
)

const (
	mostMembers    = 5
	mostCandidates = 4
)

// stage is where a candidate is.
type stage uint8

const (
	resting stage = iota // does not want the lock
	asking               // in a round
	queuing              // between two rounds, in the queue of one member
	elected              // holds the lock
	served               // has held it as often as it wanted, or has left
)

// talk is what is between a candidate and a member.
type talk uint8

const (
	silence   talk = iota
	requested      // on its way
	yes            // the vote is the candidate's, which has not heard of it
	no             // refused, and the candidate has not heard of it
	vote           // the candidate knows that it has the vote
	refusal        // the candidate knows that it has been refused
	inQueue        // the candidate stands in the member's queue
	givingUp       // the release of whatever the candidate may have there is on its way
)

// elector is one member: a lock with a queue.
type elector struct {
	down   bool // it answers nothing, and goes on later where it was
	owner  int8 // -1: it is free
	queue  [mostCandidates]int8
	length int8
}

type contestant struct {
	stage stage
	at    int8 // where it waits
	turns int8 // that it still wants
	with  [mostMembers]talk
	late  [mostMembers]bool // taken for absent in this round
	vain  [mostMembers]bool
}

// election is a Redlock in small: candidates who ask members for their votes, after the rule of package
// voting. The real ones are in internal/several, majority.go and round.go; a candidate stands for a caller, whether others
// of its process ask the same members or not.
//
// There is no time: what a candidate takes for absent is a step of its own, true or not.
type election struct {
	members    [mostMembers]elector
	candidates [mostCandidates]contestant
	n, c       int8 // how many members and candidates there are
	faults     int8 // that may still happen
}

func newElection(members, candidates, turns, faults int8) election {
	e := election{n: members, c: candidates, faults: faults}
	for m := range e.members {
		e.members[m].owner = -1
	}
	for i := range candidates {
		e.candidates[i].turns = turns
	}
	return e
}

func (c *contestant) begin(n int8) {
	c.stage, c.late = asking, [mostMembers]bool{}
	for m := range n {
		if c.with[m] == silence {
			c.with[m] = requested
		}
	}
}

// ballots are the members as c sees them.
func (c *contestant) ballots(n int8, b bug) []voting.Member {
	all := make([]voting.Member, n)
	for m := range all {
		all[m].Vain = c.vain[m]
		switch c.with[m] {
		case vote:
			all[m].Answer = voting.Granted
		case refusal:
			all[m].Answer = voting.Refused
		}
		if c.late[m] && b != "a silent member is waited for" {
			all[m].Lag = time.Hour
		}
	}
	return all
}

// count has candidate i look at its round, as Redlock.round does.
func (e *election) count(i int8, b bug) {
	c := &e.candidates[i]
	if c.stage != asking {
		return
	}
	all := c.ballots(e.n, b)
	state, at := voting.Count(all)
	switch state {
	case voting.Won:
		c.stage = elected
	case voting.Lost:
		for m := range e.n {
			switch {
			case c.with[m] == vote && (b == "every vote is kept" || voting.Keeps(int(m), at)):
			default:
				c.drop(m)
			}
		}
		if at < 0 {
			c.begin(e.n)
			return
		}
		c.stage, c.at = queuing, int8(at)
		if c.with[at] == silence {
			c.with[at] = requested
		}
	}
}

// drop gives up whatever c may have at m.
func (c *contestant) drop(m int8) {
	switch c.with[m] {
	case no, refusal:
		c.with[m] = silence
	case requested, yes, vote, inQueue:
		c.with[m] = givingUp
	}
}

// runs has member m do what is on its way to it from i.
func (e *election) runs(i, m int8, b bug) {
	c, v := &e.candidates[i], &e.members[m]
	switch c.with[m] {
	case requested:
		switch {
		case v.owner < 0 || v.owner == i:
			v.owner = i
			c.with[m] = yes
		case c.stage == queuing && c.at == m:
			v.queue[v.length] = i
			v.length++
			c.with[m] = inQueue
		default:
			c.with[m] = no
		}
	case givingUp:
		c.with[m] = silence
		v.leave(i, b)
		if v.owner == i {
			v.owner = -1
			if v.length > 0 {
				v.owner = v.queue[0]
				v.leave(v.owner, "")
				if next := &e.candidates[v.owner]; next.with[m] == inQueue { // else it leaves, and its release is on its way
					next.with[m] = yes
				}
			}
		}
		if c.stage == asking || c.stage == queuing && c.at == m {
			c.with[m] = requested // it has waited for the release
		}
	}
}

func (v *elector) leave(i int8, b bug) {
	for k := range v.length {
		if v.queue[k] == i {
			if b == "who leaves a queue takes those behind with it" {
				v.length = k + 1
			}
			copy(v.queue[k:], v.queue[k+1:])
			v.length--
			v.queue[v.length] = 0
			return
		}
	}
}

// hears has candidate i hear of the answer of m.
func (e *election) hears(i, m int8, b bug) {
	c := &e.candidates[i]
	granted := c.with[m] == yes
	c.late[m] = false
	if c.with[m] = refusal; granted {
		c.with[m] = vote
	}
	switch {
	case c.stage == queuing && granted:
		c.begin(e.n)
	case c.stage == elected && !granted:
		c.with[m] = silence
	}
	e.count(i, b)
}

// looks has candidate i find that its place is the wrong one, and ask all again.
func (e *election) looks(i int8, inVain bool) {
	c := &e.candidates[i]
	c.vain[c.at] = inVain
	c.drop(c.at)
	c.begin(e.n)
}

func (e *election) unlock(i int8) {
	c := &e.candidates[i]
	for m := range e.n {
		c.drop(m)
	}
	c.late, c.vain = [mostMembers]bool{}, [mostMembers]bool{}
	if c.turns--; c.turns > 0 {
		c.begin(e.n)
	} else {
		c.stage = served
	}
}

// leaves has candidate i give up, as a caller does whose context has ended.
func (e *election) leaves(i int8, b bug) {
	c := &e.candidates[i]
	for m := range e.n {
		if b != "who leaves keeps its votes" || c.with[m] != vote {
			c.drop(m)
		}
	}
	c.stage, c.turns = served, 0
	c.late, c.vain = [mostMembers]bool{}, [mostMembers]bool{}
}

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
