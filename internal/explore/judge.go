package explore

import (
	"maps"
	"slices"
	"strings"

	"github.com/holdfast-go/holdfast/internal/command"
	"github.com/holdfast-go/holdfast/internal/lock"
)

// The rules of these worlds alone.

func sortedKeys(m map[string]bool) []string { return slices.Sorted(maps.Keys(m)) }

func (p *process) holdOf(n int) *lock.Hold {
	if p.locks[n] == nil {
		return nil
	}
	return p.locks[n].Held()
}

// awake: a waiter has something that will wake it.
func (j *court) awake(p *process, n int, l *lock.Lock) {
	if l.Waiting() == 0 || l.Rings != 0 || l.Held() != nil {
		return
	}
	for _, f := range j.w.flights {
		if !f.ghost && f.p == p && (f.of != nil && f.of.Of() == l || slices.ContainsFunc(f.tries, func(t *lock.Try) bool { return t.Of() == l })) {
			return
		}
	}
	for _, r := range p.pauses {
		if r.Of() == l {
			return
		}
	}
	j.fails("lost wake-up", "nothing will wake the waiters of process %d", p.id)
}

// acknowledged: a grant that no replica has acknowledged is none.
func (j *court) acknowledged(f *flight) {
	t, ok := f.of.(*lock.Try)
	if !ok || !f.acks || f.acked > 0 || f.outcome != command.Answered {
		return
	}
	for _, c := range j.w.callers {
		if slices.ContainsFunc(c.leases, func(l *lock.Lease) bool { return l.Hold() == t.Hold }) {
			j.fails("not acknowledged", "caller %d has a lock that no replica knows of", c.id)
		}
	}
}

// judgeEnd is called with the end of leases.
func (w *World) judgeEnd(p *process, d *lock.Ended) {
	if d.How == lock.Lost && d.Reason != lock.LostDeadline && d.Lease != nil {
		w.judgeReason(p, d.Lease, d.Reason)
	}
}

// judgeLoss is called with the answer to an Unlock, or with why a lease has ended before it.
func (w *World) judgeLoss(c *caller, v *lock.Verdict) {
	switch {
	case v.Is(lock.Unavailable) && w.faults+w.late == 0:
		w.judge.fails("unavailable without cause", "Unlock of caller %d says that Redis is unavailable", c.id)
	case v.Is(lock.LeaseLost) && v.Reason != lock.LostDeadline && !w.judge.deleted && len(w.judge.expired) == 0:
		w.judge.fails("lost without cause", "Unlock of caller %d says that the lease was lost: %s", c.id, v.Reason)
	case v.Is(lock.LeaseLost) && w.faults+w.late == 0:
		w.judge.fails("lost without cause", "Unlock of caller %d says that the lease was lost, though nothing went wrong: %s", c.id, v.Reason)
	}
}

func (w *World) judgeReason(p *process, l *lock.Lease, reason lock.Reason) {
	if !w.judge.deleted && !w.judge.expired[strings.TrimSuffix(p.owner(l.Hold()), ":write")] {
		w.judge.fails("lost without cause", "process %d says that a lease was lost, and it was not: %s", p.id, reason)
	}
}

// judgeTry is called with each request for a lock.
func (w *World) judgeTry(p *process, t *lock.Try) {
	if p.turn[t.Of().Shell.(int)] {
		w.judge.fails("turn", "it was the turn of one of Redisson's, and process %d asks", p.id)
	}
}

// judgeReply is called with each answer, before its lock knows.
func (w *World) judgeReply(p *process, f *flight, r *lock.Reply) {
	l := f.of.Of()
	if _, ok := f.of.(*lock.Release); !ok || r.Says != lock.Done || !r.Wanted || l.Waiting() == 0 {
		return
	}
	n := l.Shell.(int)
	p.turn[n] = slices.ContainsFunc(w.callers, func(c *caller) bool { return c.Java && c.phase == waiting && c.Locks[0] == n })
}
