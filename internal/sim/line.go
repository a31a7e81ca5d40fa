package sim

import "slices"

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
	if l.came[id] == 0 { // what was known of it is lost
		l.lapsed[id] = true
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
		if n := l.first[h.id]; n != 0 { // it was let in at once, and has not stood at the end
			l.came[h.id] = n
			delete(l.first, h.id)
		}
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
		if l.came[a] > l.came[b] && !(l.lapsed[a] && l.lapsed[b]) && u.of(a) != nil && u.of(b) != nil {
			j.failLocked("queue", "%v: %s stands before %s, which came before", u, a, b)
		}
	}
}
