package judge

import (
	"slices"
	"strconv"
	"strings"

	"github.com/holdfast-go/holdfast/internal/wire"
)

// line is the order in which ids came to a queue.
type line struct {
	came   map[string]int
	first  map[string]int  // of an id that comes as one that has had no place: the number from when it had one
	lapsed map[string]bool // was away since it came, so that others may have passed it
	comers int
}

func newLine() line {
	return line{came: map[string]int{}, first: map[string]int{}, lapsed: map[string]bool{}}
}

func (l *line) forget(id string) {
	delete(l.came, id)
	delete(l.first, id)
	delete(l.lapsed, id)
}

// recall gives an id the number that it had.
func (l *line) recall(id string) {
	if n := l.first[id]; n != 0 {
		l.came[id] = n
		delete(l.first, id)
	}
}

// Lapse takes note of the places whose time is over, of which no event has told: Redis drops them when it runs the next script.
func (j *Judge) Lapse(l *Lock) {
	for i, id := range l.State.Queue {
		if j.Now() > l.State.Kept[i] {
			l.line.lapsed[id] = true
		}
	}
}

// Asks is called before a script runs that may ask for places; args are its arguments, of which one is made by protocol.Stand. A server that refuses it
// gives no new place.
func (l *Lock) Asks(script string, args []string, refused bool) {
	wait, ids := "", []string(nil)
	switch {
	case script == "join":
		wait = args[0]
		for _, tail := range args[2:] {
			ids = append(ids, args[1]+tail)
		}
	case strings.HasSuffix(script, "_acquire") && len(args) > 2:
		wait, ids = args[2], args[:1]
	}
	for _, id := range ids {
		switch {
		case strings.HasPrefix(wait, "same "):
			l.comesBack(id)
		case strings.HasPrefix(wait, "new ") && !refused:
			l.Comes(id)
		}
	}
}

// comesBack is called when an id asks for the place that it had.
func (l *Lock) comesBack(id string) {
	if l.line.came[id] == 0 { // it has come again without standing at the end, or what was known of it is lost
		l.line.lapsed[id] = true
		l.line.recall(id)
	}
}

// Comes is called when an id asks for a place as one that has had none. A late copy of a request does so too, whose id has lost its place; or has
// been granted the lock since.
func (l *Lock) Comes(id string) {
	if slices.Contains(l.State.Queue, id) || l.Holder(id) != nil {
		return
	}
	n := l.line.came[id]
	l.line.forget(id)
	if n != 0 {
		l.line.first[id] = n
	}
}

// lines finds queues that are not in the order of arrival: of two that wait, the later one stands before only if both have lost their
// places since they came. before is the queue before.
func (j *Judge) lines(l *Lock, before []string) {
	x, now := &l.line, j.Now()
	there := map[string]bool{}
	for i, id := range l.State.Queue {
		there[id] = true
		if now <= l.Excused || now > l.State.Kept[i] { // its data, or its time, is over
			x.lapsed[id] = true
		}
		if x.came[id] == 0 {
			x.comers++
			x.came[id] = x.comers
		}
		delete(x.first, id)
	}
	for _, h := range l.State.Holders {
		x.recall(h.ID) // it was let in at once, and has not stood at the end
		if x.came[h.ID] != 0 {
			x.lapsed[h.ID] = true // if it returns, its claim has ended
		}
	}
	for _, id := range before {
		if !there[id] && x.came[id] != 0 {
			x.lapsed[id] = true
		}
	}
	if j.Closed || now <= l.Excused || l.Loose {
		return
	}
	for i := 1; i < len(l.State.Queue); i++ {
		a, b := l.State.Queue[i-1], l.State.Queue[i]
		if x.came[a] > x.came[b] && !(x.lapsed[a] && x.lapsed[b]) && !j.numbered(l, a, b) {
			j.Fail(l, "queue", "%v: %s stands before %s, which came before", l, a, b)
		}
	}
}

// numbered reports whether a and b are of one process, whose callers came in the order of the numbers, and stand in that order; or
// one is of a process that is gone.
func (j *Judge) numbered(l *Lock, a, b string) bool {
	p, q := j.Of(l, a), j.Of(l, b)
	return p == nil || q == nil || p == q && number(a) < number(b)
}

// number is that of an owner id.
func number(id string) int64 {
	_, tail, _ := strings.Cut(id, ":")
	tail, _, _ = strings.Cut(tail, ":") // the write side, or a claim of permits
	n, _ := strconv.ParseInt(tail, 10, 64)
	return n
}

// IsFor reports whether a place is that of a holder: of a semaphore it is a claim of some permits, each of which is a holder.
func IsFor(place, holder string) bool {
	parts := strings.Split(place, ":")
	if len(parts) != 3 || !strings.HasPrefix(holder, parts[0]+":") {
		return place == holder
	}
	n, err := strconv.ParseInt(parts[2], 10, 64)
	if err != nil { // the write side
		return place == holder
	}
	return number(place) <= number(holder) && number(holder) < number(place)+n
}

// Order finds out whether a lock was granted to an owner although another one stood before it in the queue, whose place was kept and is there
// still. before is what Redis had.
func (j *Judge) Order(l *Lock, before *State, by string) {
	if len(before.Queue) == 0 || j.Now() <= l.Excused {
		return
	}
	for _, h := range l.State.Holders {
		held := slices.ContainsFunc(before.Holders, func(o Holder) bool { return o.ID == h.ID || o.ID == h.ID+":write" }) // or a downgrade
		if held || l.Stayed[h.ID] || !wire.IsOurs(h.ID) {
			continue
		}
		place := slices.IndexFunc(before.Queue, func(id string) bool { return id == h.ID || l.Permits > 0 && IsFor(id, h.ID) })
		if place < 0 {
			place = len(before.Queue)
		}
		for i, earlier := range before.Queue[:place] {
			if before.Kept[i] > j.Now() && slices.Contains(l.State.Queue, earlier) {
				j.Fail(l, "order", "%v: %s grants it to %s before %s", l, by, h.ID, earlier)
			}
		}
	}
}
