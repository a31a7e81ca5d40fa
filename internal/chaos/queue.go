package chaos

import (
	"slices"
	"strconv"
	"strings"
)

// Turns is what the server's file says of the order in a lock's queue.
type Turns struct {
	Waited    int // grants to owners that had stood in the queue
	Overtaken int // of these, to owners that had never left it and were not first to come
	Most      int // the most that got the lock before one that came earlier
	First     string
	At        int64 // of First, the first one that overtook
}

// line is a queue of the lock, replayed. An owner that leaves it without the lock, or is
// passed over because its process was silent, has lost its claim to the order.
type line struct {
	ids     []string
	came    map[string]int      // in which place; one that returns to the front has its old one
	stayed  map[string]bool     // since it came
	passed  map[string][]string // who got the lock meanwhile, having come later
	comers  int
	removed map[string]bool // since MULTI, in any way: perhaps granted
}

// lockOfQueue returns the lock that a key is the queue of; ok is false if it is none.
func lockOfQueue(key string) (lock string, ok bool) {
	for _, prefix := range []string{"redisson_lock_queue:{", "holdfast_rw_queue:{"} {
		if lock, ok := strings.CutPrefix(key, prefix); ok {
			return strings.TrimSuffix(lock, "}"), true
		}
	}
	return "", false
}

// lineOf returns the queue of a lock.
func (r *replay) lineOf(lock string) *line {
	l := r.lines[lock]
	if l == nil {
		l = &line{came: make(map[string]int), stayed: make(map[string]bool), passed: make(map[string][]string), removed: make(map[string]bool)}
		r.lines[lock] = l
	}
	return l
}

// queued follows a command on a queue's list.
func (l *line) queued(command string, args []string) {
	switch command {
	case "rpush":
		for _, id := range args {
			l.ids = append(l.ids, id)
			l.comers++
			l.came[id], l.stayed[id] = l.comers, true
		}
	case "lpush": // back in front: its place was taken away
		l.ids = slices.Insert(l.ids, 0, args...)
	case "linsert":
		at := slices.Index(l.ids, args[1])
		if strings.EqualFold(args[0], "after") {
			at++
		}
		l.ids = slices.Insert(l.ids, max(at, 0), args[2])
	case "lpop":
		if len(l.ids) > 0 {
			l.remove(l.ids[0])
		}
	case "rpop": // no script of Holdfast does that, but for a seeded bug
		if len(l.ids) > 0 {
			l.remove(l.ids[len(l.ids)-1])
		}
	case "lset": // the place of one that leaves, which an LREM ends
		if i, err := strconv.Atoi(args[0]); err == nil && i >= 0 && i < len(l.ids) {
			l.removed[l.ids[i]], l.ids[i] = true, args[1]
		}
	case "lrem":
		for slices.Contains(l.ids, args[1]) {
			l.remove(args[1])
		}
	case "del", "unlink":
		for len(l.ids) > 0 {
			l.remove(l.ids[0])
		}
	}
}

func (l *line) remove(id string) {
	if i := slices.Index(l.ids, id); i >= 0 {
		l.ids = slices.Delete(l.ids, i, i+1)
		l.removed[id] = true
	}
}

// granted is called when id gets the lock: a waiter that stands in the queue since before it
// came is passed. It takes note of it if id itself was.
func (l *line) granted(t *Turns, id string, at int64) {
	came, known := l.came[id]
	if !known {
		came = l.comers + 1
	}
	for _, other := range l.ids {
		if l.stayed[other] && l.came[other] < came && other != id {
			l.passed[other] = append(l.passed[other], id)
		}
	}
	if !l.stayed[id] {
		return
	}
	t.Waited++
	if by := l.passed[id]; len(by) > 0 {
		if t.Overtaken == 0 {
			t.First, t.At = id+" waited longer than "+by[0], at
		}
		t.Overtaken++
		t.Most = max(t.Most, len(by))
	}
	l.forget(id)
}

// settle ends a script: who left the queue without the lock has no claim any more.
func (l *line) settle() {
	for id := range l.removed {
		l.forget(id)
	}
	clear(l.removed)
}

func (l *line) forget(id string) {
	delete(l.stayed, id)
	delete(l.passed, id)
}
