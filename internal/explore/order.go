package explore

import (
	"slices"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/internal/lock"
)

// For how long a process passes a lock on.

// arrival is a time at which another process began to wait for the lock that a hold has.
type arrival struct {
	hold *lock.Hold
	at   time.Time
}

// others notes since when another process has waited for what a process holds.
func (j *court) others() {
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
	p, n, h := c.p(), l.Of().Shell.(int), l.Hold()
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
		if a.hold == h && !asked && w.now.Sub(a.at) >= 2*slice {
			if p.passes[n]++; p.passes[n] > 2 {
				w.judge.fails("not passed on", "process %d passes the lock on for more than two slices", p.id)
			}
		}
	})
}
