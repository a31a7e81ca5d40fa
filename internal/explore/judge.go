package explore

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/internal/judge"
	"github.com/holdfast-go/holdfast/internal/lock"
)

// The rules of these worlds alone.

// awake: a waiter has something that will wake it.
func (j *court) awake(p *process, n int, l *lock.Lock) {
	if l.Waiting() == 0 || l.Rings != 0 || l.Held() != nil {
		return
	}
	for _, f := range j.w.flights {
		if !f.ghost && f.p == p && (f.lock == l || slices.ContainsFunc(f.tries, func(t *lock.Try) bool { return t.Hold.Lock == l })) {
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
	if !ok || !f.acks || f.acked > 0 || f.outcome != lock.Answered {
		return
	}
	for _, c := range j.w.callers {
		if slices.ContainsFunc(c.leases, func(l *lock.Lease) bool { return l.Hold() == t.Hold }) {
			j.fails("not acknowledged", "caller %d has a lock that no replica knows of", c.id)
		}
	}
}

// judgeEnd is called with the end of a lease: none is said to be deleted, or another owner's, that was not.
func (w *World) judgeEnd(p *process, d *lock.Ended) {
	if d.How != lock.Lost || d.Reason == lock.LostDeadline || d.Lease == nil {
		return
	}
	h := d.Lease.Hold()
	id := strings.TrimSuffix(p.owner(h), ":write")
	if n := h.Terms.Permits; n > 0 {
		id = strings.TrimSuffix(id, fmt.Sprint(":", n)) // the first of them
	}
	if !w.judge.deleted && !w.judge.expired[id] {
		w.judge.fails("lost without cause", "process %d says that a lease was lost, and it was not: %s", p.id, d.Reason)
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

// judgeTry is called with each request for a lock.
func (w *World) judgeTry(p *process, t *lock.Try) {
	if t.Hold.Terms.Permits > 0 && w.faults > 0 {
		return // it may repeat what it had asked before, beside what it has given back
	}
	if p.turn[t.Hold.Lock.Shell.(int)] {
		w.judge.fails("turn", "it was the turn of one of Redisson's, and process %d asks", p.id)
	}
}

// judgeReply is called with each answer, before its lock knows.
func (w *World) judgeReply(p *process, f *flight, r *lock.Reply) {
	l := f.lock
	if _, ok := f.of.(*lock.Release); !ok || r.Says != lock.Done || !r.Wanted || l.Waiting() == 0 {
		return
	}
	n := l.Shell.(int)
	p.turn[n] = slices.ContainsFunc(w.callers, func(c *caller) bool { return c.Java && c.phase == waiting && c.Locks[0] == n })
}

// What is judged when nothing happens any more, for a process or for all.

// clean: a process that is at rest has nothing in Redis.
func (j *court) clean(p *process) {
	w := j.w
	if !p.isIdle() || slices.ContainsFunc(w.flights, func(f *flight) bool { return f.p == p }) ||
		slices.ContainsFunc(w.callers, func(c *caller) bool {
			return !c.Java && c.p() == p && (c.phase == inside || c.phase == waiting || c.AtLeast > 0)
		}) {
		return
	}
	for _, k := range w.db.Keys(w.now) {
		if k.Kind == "zset" && w.semaphore(k.Name) == nil {
			continue // tombstones; and the list tells whether there is a place
		}
		for _, id := range k.List {
			if k.Kind == "zset" {
				id = judge.PermitID(id)
			}
			if strings.HasPrefix(id, p.says.Owners) {
				j.fails("forsaken hold", "process %d is at rest, and %s has its %s", p.id, k.Name, id)
			}
		}
	}
}

// all judges what is left when no caller is left.
func (j *court) all() {
	w := j.w
	if len(w.flights) > 0 || slices.ContainsFunc(w.procs, func(p *process) bool { return p.state == dead || !p.isIdle() }) ||
		slices.ContainsFunc(w.callers, func(c *caller) bool { return c.phase != gone || c.AtLeast > 0 }) {
		return
	}
	for _, k := range w.db.Keys(w.now) {
		if !strings.HasPrefix(k.Name, "redisson_lock_token") && !strings.HasPrefix(k.Name, "holdfast_tombstones") && !w.mayStay(k) {
			j.fails("left behind", "%s", k.Name)
		}
	}
}

// most is how long a world lasts.
const most = 5 * time.Minute

// patience is called when time has to pass.
func (j *court) patience() {
	for _, c := range j.w.callers {
		if c.phase == waiting && j.w.now.Sub(epoch) > most {
			j.fails("starved", "caller %d waits forever", c.id)
		}
	}
}

// passing is called before time passes.
func (j *court) passing(to time.Time) {
	for _, l := range j.locks {
		for _, h := range l.State.Holders {
			if l.Permits > 0 && h.Until <= j.time(to) {
				j.expired[h.ID] = true
			}
		}
	}
	for _, k := range j.w.db.Keys(j.w.now) {
		if k.Kind == "hash" && k.Expires != 0 && k.Expires <= to.UnixMilli() {
			for i := 0; i < len(k.List); i += 2 {
				j.expired[strings.TrimSuffix(k.List[i], ":write")] = true
			}
		}
		if k.Kind == "string" && k.Expires != 0 && k.Expires <= to.UnixMilli() {
			if _, id, ok := strings.Cut(k.Name, "}:"); ok {
				id, _, _ = strings.Cut(id, ":rwlock_timeout")
				j.expired[id] = true
			}
		}
	}
}

// atRest judges a world in which nothing can happen any more.
func (j *court) atRest() {
	w := j.w
	for _, c := range w.callers {
		if c.phase != gone {
			j.fails("starved", "caller %d waits forever", c.id)
		}
	}
	for _, p := range w.procs {
		if p.state != dead && p.pending != 0 {
			j.fails("late return", "Close of process %d would wait forever", p.id)
		}
	}
}
