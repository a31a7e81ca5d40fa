package explore

import (
	"slices"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/internal/lock"
)

// The order in which callers and processes get a lock.

// places: the queue of a fair lock is in the order of arrival.
func (j *judge) places() {
	w := j.w
	for n := range w.plan.Locks {
		of := &w.plan.Locks[n]
		if of.Kind != lock.FairKind {
			continue
		}
		var queue []string
		for _, k := range w.db.Keys(w.now) {
			if k.Name == of.keys.Queue {
				queue = k.List
			}
		}
		var last *caller
		for _, id := range queue {
			for _, c := range w.callers {
				if c.Java || c.Locks[0] != n || c.number == 0 || id != c.claim() {
					continue
				}
				if c.came == 0 {
					j.comers++
					c.came = j.comers
				}
				if c.phase != waiting {
					continue
				}
				if last != nil && last.came > c.came && !(last.lapsed && c.lapsed) {
					j.says("the queue is not in the order of arrival: caller %d stands before caller %d", last.id, c.id)
				}
				last = c
			}
		}
		for _, c := range w.callers {
			if c.Java || c.Locks[0] != n || c.number == 0 || c.phase != waiting {
				continue
			}
			id := c.claim()
			_, has := w.db.Field(of.Name, id, w.now)
			if has && !c.granted {
				j.overtakes(c, queue)
			}
			c.granted = has
			c.lapsed = c.lapsed || c.came > 0 && !has && !slices.Contains(queue, id)
		}
	}
}

// overtakes: c, which the server has just granted the lock, has come before all that wait.
func (j *judge) overtakes(c *caller, queue []string) {
	for _, o := range j.w.callers {
		if o == c || o.Java || o.phase != waiting || o.came == 0 || o.lapsed || c.came > 0 && c.came < o.came {
			continue
		}
		if slices.Contains(queue, o.claim()) {
			j.says("order of arrival: caller %d is granted the lock before caller %d", c.id, o.id)
		}
	}
}

// arrival is a time at which another process began to wait for the lock that a hold has.
type arrival struct {
	hold *lock.Hold
	at   time.Time
}

// others notes since when another process has waited for what a process holds.
func (j *judge) others() {
	for n := range j.w.plan.Locks {
		of := &j.w.plan.Locks[n]
		for _, p := range j.w.procs {
			h := p.holdOf(n)
			wanted := false
			for _, k := range j.w.db.Keys(j.w.now) {
				if k.Name == of.keys.Queue {
					wanted = slices.ContainsFunc(k.List, func(id string) bool { return !strings.HasPrefix(id, p.says.Owners) })
				}
			}
			switch a, known := j.since[n][p.id]; {
			case h == nil || !wanted:
				delete(j.since[n], p.id)
			case !known || a.hold != h:
				j.since[n][p.id] = arrival{h, j.w.now}
			}
		}
	}
}

// judgePass is called before a caller unlocks, and again by what follows it: a process passes a lock on for a slice or two.
func (w *World) judgePass(c *caller, l *lock.Lease) {
	p, n, h := c.p(), l.Of().Shell().(int), l.Hold()
	w.after(func() {
		if p.state == dead || p.holdOf(n) != h {
			p.passes[n] = 0
			return
		}
		a := w.judge.since[n][p.id]
		asked := slices.ContainsFunc(w.flights, func(f *flight) bool {
			q, ok := f.of.(*lock.Question)
			return ok && !f.ghost && q.Hold == h
		})
		if a.hold == h && !asked && w.now.Sub(a.at) >= 2*w.plan.Slice {
			if p.passes[n]++; p.passes[n] > 2 {
				w.judge.says("process %d passes the lock on for more than two slices", p.id)
			}
		}
	})
}
