package explore

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/holdfast-go/holdfast/internal/command"
	"github.com/holdfast-go/holdfast/internal/lock"
	"github.com/holdfast-go/holdfast/internal/wire"
)

// judge compares what callers have been told with what the server has. It keeps the first promise that was broken.
type judge struct {
	w       *World
	broken  string            // ""; none was
	deleted bool              // another client has deleted a lock
	slow    bool              // an answer took too long
	expired map[string]bool   // owner ids whose TTL has ended
	tokens  []uint64          // of each lock, the highest that a caller has got
	comers  int               // places that have been seen in queues
	since   []map[int]arrival // of each lock, by process: since when it has the lock while another process waits
}

func (j *judge) begin(w *World) {
	j.w, j.expired, j.tokens = w, map[string]bool{}, make([]uint64, len(w.plan.Locks))
	for range w.plan.Locks {
		j.since = append(j.since, map[int]arrival{})
	}
}

func (j *judge) says(format string, args ...any) {
	if j.broken == "" {
		j.broken = fmt.Sprintf(format, args...)
	}
}

// memory writes what later judgements depend on, beside the state of the world.
func (j *judge) memory(f *printer) {
	f.bool(j.deleted)
	f.bool(j.slow)
	for _, t := range j.tokens {
		f.int(int64(t))
	}
	for n, all := range j.since {
		for _, p := range j.w.procs {
			a, known := all[p.id]
			known = known && a.hold == p.holdOf(n)
			if f.bool(known); known { // two slices are as much as any judgement goes by
				f.int(int64(min(2*j.w.plan.Slice, j.w.now.Sub(a.at))))
			}
		}
	}
	f.len(len(j.expired))
	for _, id := range slices.Sorted(maps.Keys(j.expired)) {
		f.ids(id)
	}
}

func (p *process) holdOf(n int) *lock.Hold {
	if p.locks[n] == nil {
		return nil
	}
	return p.locks[n].Held()
}

// held is a lease that a caller has now.
type held struct {
	c *caller
	l *lock.Lease
}

// look judges the state after a step.
func (j *judge) look() {
	w := j.w
	var all []held
	for _, c := range w.callers {
		for _, l := range c.leases {
			if l.Valid(w.now) {
				all = append(all, held{c, l})
			}
		}
	}
	if !j.deleted {
		j.exclusion(all)
	}
	for _, k := range w.db.Keys(w.now) {
		if k.Expires == 0 && !strings.HasPrefix(k.Name, "redisson_lock_token") {
			j.says("%s has no TTL", k.Name)
		}
	}
	j.places()
	for _, p := range w.procs {
		if p.state == dead {
			continue
		}
		for n, l := range p.locks {
			if l != nil {
				j.awake(p, n, l)
			}
		}
		j.clean(p)
	}
	j.all()
}

// exclusion: no two owners have a lock, and the server knows each that does.
func (j *judge) exclusion(all []held) {
	w := j.w
	for i, a := range all {
		h, p := a.l.Hold(), a.c.p()
		key := h.Of().Keys().Lock.(string)
		for _, b := range all[:i] {
			other := b.l.Hold()
			if other != h && other.Of().Keys().Lock == key && (h.Kind != lock.ReadKind || other.Kind != lock.ReadKind) {
				j.says("two have the lock: caller %d and caller %d", b.c.id, a.c.id)
			}
		}
		for _, b := range w.callers {
			if b.Java && b.phase == inside && b.of().keys.Lock == key {
				j.says("two have the lock: caller %d and one of Redisson's", a.c.id)
			}
		}
		if a.l.Kind() == lock.WriteKind && h.Kind == lock.ReadKind {
			j.says("caller %d has the write side, and the server the read side", a.c.id)
		}
		id := p.owner(h)
		_, known := w.db.Field(key, id, w.now)
		if h.Converting() && !known {
			_, known = w.db.Field(key, id+":write", w.now)
		} else if known && h.Kind == lock.ReadKind && !h.Converting() {
			known = w.db.Has(wire.ReadRight(key, id), w.now)
		}
		if !known {
			j.says("the lease of caller %d is valid, and the server does not know of it", a.c.id)
		}
	}
}

// awake: a waiter has something that will wake it.
func (j *judge) awake(p *process, n int, l *lock.Lock) {
	if l.Waiting() == 0 || l.Rings() != 0 || l.Held() != nil {
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
	j.says("nothing will wake the waiters of process %d", p.id)
}

// acknowledged: a grant that no replica has acknowledged is none.
func (j *judge) acknowledged(f *flight) {
	t, ok := f.of.(*lock.Try)
	if !ok || !f.acks || f.acked > 0 || f.outcome != command.Answered {
		return
	}
	for _, c := range j.w.callers {
		if slices.ContainsFunc(c.leases, func(l *lock.Lease) bool { return l.Hold() == t.Hold }) {
			j.says("caller %d has a lock that no replica knows of", c.id)
		}
	}
}

// judgeGrant is called with each lease that a caller gets, but by re-entry.
func (w *World) judgeGrant(c *caller, l *lock.Lease) {
	n := l.Of().Shell().(int)
	if c.Fencing {
		last := w.judge.tokens[n]
		if t := l.Token(); t < last || t == last && l.Hold().Kind != lock.ReadKind || t == 0 {
			w.judge.says("caller %d has the token %d, after %d", c.id, t, last)
		}
		w.judge.tokens[n] = max(last, l.Token())
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
		w.judge.says("Unlock of caller %d says that Redis is unavailable", c.id)
	case v.Is(lock.LeaseLost) && v.Reason != lock.LostDeadline && !w.judge.deleted && len(w.judge.expired) == 0:
		w.judge.says("Unlock of caller %d says that the lease was lost: %s", c.id, v.Reason)
	case v.Is(lock.LeaseLost) && w.faults+w.late == 0:
		w.judge.says("Unlock of caller %d says that the lease was lost, though nothing went wrong: %s", c.id, v.Reason)
	}
}

func (w *World) judgeReason(p *process, l *lock.Lease, reason lock.Reason) {
	if !w.judge.deleted && !w.judge.expired[strings.TrimSuffix(p.owner(l.Hold()), ":write")] {
		w.judge.says("process %d says that a lease was lost, and it was not: %s", p.id, reason)
	}
}

// judgeTry is called with each request for a lock.
func (w *World) judgeTry(p *process, t *lock.Try) {
	if p.turn[t.Of().Shell().(int)] {
		w.judge.says("it was the turn of one of Redisson's, and process %d asks", p.id)
	}
}

// judgeReply is called with each answer, before its lock knows.
func (w *World) judgeReply(p *process, f *flight, r *lock.Reply) {
	l := f.of.Of()
	if _, ok := f.of.(*lock.Release); !ok || r.Says != lock.Done || r.Listeners <= p.OwnListeners(l.Keys()) || l.Waiting() == 0 {
		return
	}
	n := l.Shell().(int)
	p.turn[n] = slices.ContainsFunc(w.callers, func(c *caller) bool { return c.Java && c.phase == waiting && c.Locks[0] == n })
}
