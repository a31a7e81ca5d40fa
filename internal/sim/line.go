package sim

import (
	"slices"
	"strings"
)

// line is the order in which ids came to a queue. The zero value has none.
type line struct {
	came   map[string]int
	first  map[string]int  // of an id that comes as one that has had no place: the number from when it had one
	lapsed map[string]bool // was away since it came, so that others may have passed it
	comers int
}

// lapseLocked takes note of the places whose time is over, of which no event has told: Redis drops them when it runs the next script.
func (u *unit) lapseLocked() {
	u.line.begin()
	for i, id := range u.state.queue {
		if u.w.now() > u.state.kept[i] {
			u.line.lapsed[id] = true
		}
	}
}

// returns is called when an id asks for the place that it had.
func (l *line) returns(id string) {
	l.begin()
	if l.came[id] == 0 { // it has come again without standing at the end, or what was known of it is lost
		l.lapsed[id] = true
		l.recall(id)
	}
}

// arrives is called when an id asks for a place as one that has had none. A late copy of a request does so too, whose id has lost its place; or has
// been granted the lock since; or the server refuses it.
func (u *unit) arrives(id string) {
	holds := slices.ContainsFunc(u.state.holders, func(h holder) bool { return h.id == id })
	if !slices.Contains(u.state.queue, id) && !holds && !u.s.refusesLocked() {
		if n := u.line.came[id]; n != 0 {
			u.line.first[id] = n
		}
		delete(u.line.came, id)
		delete(u.line.lapsed, id)
	}
}

// recall gives an id the number that it had.
func (l *line) recall(id string) {
	if n := l.first[id]; n != 0 {
		l.came[id] = n
		delete(l.first, id)
	}
}

func (l *line) begin() {
	if l.came == nil {
		l.came, l.first, l.lapsed = map[string]int{}, map[string]int{}, map[string]bool{}
	}
}

// lineLocked finds queues that are not in the order of arrival: of two that wait, the later one stands before only if both have lost their
// places since they came.
func (j *judge) lineLocked(u *unit) {
	l := &u.line
	l.begin()
	there := map[string]bool{}
	for i, id := range u.state.queue {
		there[id] = true
		if j.w.now() <= u.excused || j.w.now() > u.state.kept[i] { // its data, or its time, is over
			l.lapsed[id] = true
		}
		if l.came[id] == 0 {
			l.comers++
			l.came[id] = l.comers
		}
		delete(l.first, id)
	}
	for _, h := range u.state.holders {
		l.recall(h.id) // it was let in at once, and has not stood at the end
		if l.came[h.id] != 0 {
			l.lapsed[h.id] = true // if it returns, its claim has ended
		}
	}
	for id := range l.came {
		if !there[id] {
			l.lapsed[id] = true
		}
	}
	if j.closed || j.w.now() <= u.excused || j.w.plan.Shape == BesideJava {
		return
	}
	for i := 1; i < len(u.state.queue); i++ {
		a, b := u.state.queue[i-1], u.state.queue[i]
		if l.came[a] > l.came[b] && !(l.lapsed[a] && l.lapsed[b]) && u.of(a) != nil && u.of(b) != nil && !u.numbered(a, b) {
			j.failLocked("queue", "%v: %s stands before %s, which came before", u, a, b)
		}
	}
}

// numbered reports whether a and b are of one process, whose callers came in the order of the numbers, and stand in that order.
func (u *unit) numbered(a, b string) bool {
	prefix := u.of(a).prefix[u.s.n]
	of := func(id string) int64 { return number(strings.TrimSuffix(strings.TrimPrefix(id, prefix), ":write")) }
	return strings.HasPrefix(b, prefix) && of(a) < of(b)
}
