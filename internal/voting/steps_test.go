package voting_test

import (
	"fmt"

	"github.com/holdfast-go/holdfast/internal/voting"
)

// steps returns everything that can happen in e.
func (e election) steps(b bug) (all []step[election]) {
	add := func(what string, change func(*election)) {
		to := e
		change(&to)
		all = append(all, step[election]{what, to})
	}
	for i := range e.c {
		switch c := e.candidates[i]; c.stage {
		case resting:
			if i > 0 && e.candidates[i-1].stage == resting {
				break // they are alike: one order of them is enough
			}
			add(fmt.Sprintf("candidate %d comes", i), func(e *election) { e.candidates[i].begin(e.n) })
		case elected:
			add(fmt.Sprintf("candidate %d unlocks", i), func(e *election) { e.unlock(i) })
		case queuing:
			if e.keepsSome(i) {
				add(fmt.Sprintf("candidate %d has kept votes for long enough", i), func(e *election) { e.givesBackKept(i) })
			}
		}
		if s := e.candidates[i].stage; e.faults > 0 && (s == asking || s == queuing) {
			add(fmt.Sprintf("candidate %d leaves", i), func(e *election) {
				e.faults--
				e.leaves(i, b)
			})
		}
		for m := range e.n {
			if c := &e.candidates[i]; c.awaits(m) && !c.late[m] && (e.members[m].down || e.faults > 0) {
				add(fmt.Sprintf("member %d is late for %d", m, i), func(e *election) {
					if !e.members[m].down {
						e.faults--
					}
					e.isLate(i, m, b)
				})
			}
			switch e.candidates[i].with[m] {
			case requested, givingUp:
				if !e.members[m].down {
					add(fmt.Sprintf("member %d is asked by %d", m, i), func(e *election) { e.runs(i, m, b) })
				}
			case yes, no:
				if !e.members[m].down {
					add(fmt.Sprintf("member %d answers %d", m, i), func(e *election) { e.hears(i, m, b) })
				}
			}
		}
	}
	for m := range e.n {
		switch {
		case e.members[m].down:
			add(fmt.Sprintf("member %d is back", m), func(e *election) { e.members[m].down = false })
		case e.faults > 0 && e.down() < int(e.n)-voting.Quorum(int(e.n)):
			add(fmt.Sprintf("member %d is down", m), func(e *election) {
				e.faults--
				e.members[m].down = true
			})
		}
	}
	return all
}

func (e *election) down() (n int) {
	for m := range e.n {
		if e.members[m].down {
			n++
		}
	}
	return n
}

// awaits reports whether c is in a round in which m has not answered.
func (c *contestant) awaits(m int8) bool {
	return c.stage == asking && c.with[m] != vote && c.with[m] != refusal
}

// isLate has candidate i take member m for absent in this round.
func (e *election) isLate(i, m int8, b bug) {
	e.candidates[i].late[m] = true
	e.count(i, b)
}

// keepsSome reports whether candidate i has votes while it waits.
func (e *election) keepsSome(i int8) bool {
	c := &e.candidates[i]
	for m := range e.n {
		if c.stage == queuing && c.with[m] == vote {
			return true
		}
	}
	return false
}

func (e *election) givesBackKept(i int8) {
	for m := range e.n {
		if m != e.candidates[i].at {
			e.candidates[i].drop(m)
		}
	}
}

// broken says which promise e breaks, if any.
func (e election) broken(b bug) string {
	in, votes := 0, 0
	for i := range e.c {
		if e.candidates[i].stage != elected {
			continue
		}
		in++
		for m := range e.n {
			if e.members[m].owner == i {
				votes++
			}
		}
	}
	switch {
	case in > 1:
		return "two are elected"
	case in == 1 && votes < voting.Quorum(int(e.n)):
		return "elected without a majority"
	}
	return e.settle(b)
}

// settle lets everything happen that is under way, with the members as they are, until all candidates
// have been served, and says who was not. Time passes only where nothing else happens: a member that
// is down is late then, a vote that is kept is given back, and who waits at a member looks around.
func (e election) settle(b bug) string {
	const enough = 60 // rounds of what is under way
	for range enough {
		before := e
		for i := range e.c {
			if e.candidates[i].stage == resting {
				e.candidates[i].begin(e.n)
			}
			if e.candidates[i].stage == elected {
				e.unlock(i)
			}
			for m := range e.n {
				if e.members[m].down {
					continue
				}
				switch e.candidates[i].with[m] {
				case requested, givingUp:
					e.runs(i, m, b)
				case yes, no:
					e.hears(i, m, b)
				}
			}
		}
		if e == before {
			e.wait(b)
		}
		if e == before {
			break
		}
	}
	for i := range e.c {
		if e.candidates[i].stage != served {
			return fmt.Sprintf("candidate %d waits for ever", i)
		}
	}
	for m := range e.n {
		if v := e.members[m]; !v.down && (v.owner >= 0 || v.length > 0) {
			return fmt.Sprintf("member %d is not free in the end", m)
		}
	}
	return ""
}

// wait is what happens by the passing of time alone.
func (e *election) wait(b bug) {
	before := *e
	for i := range e.c {
		c := &e.candidates[i]
		for m := range e.n {
			if e.members[m].down && c.awaits(m) {
				e.isLate(i, m, b)
			}
		}
	}
	if *e != before {
		return
	}
	for i := range e.c {
		if e.keepsSome(i) && b != "every vote is kept" {
			e.givesBackKept(i)
		}
	}
	if *e != before {
		return
	}
	for i := range e.c {
		if c := &e.candidates[i]; c.stage == queuing && e.members[c.at].down && b != "nobody looks around" {
			e.looks(i, true)
		}
	}
}
