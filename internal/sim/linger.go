package sim

import (
	"slices"
	"time"

	"github.com/holdfast-go/holdfast/internal/wire"
)

// mostLinger is the longest time for which a process of a plan keeps a lock after Unlock (WithLinger).
const mostLinger = 5 * time.Second

// addLingerers has processes keep locks. It has chance of its own.
func (p *Plan) addLingerers() {
	if p.Shape == Majority || p.Shape == WithReplicas {
		return
	}
	chance := newRand(p.Seed, 16)
	for i := range p.Locks {
		l := &p.Locks[i]
		if (l.Kind == Mutex || l.Kind == RW) && !l.Fixed && l.AtLeast == 0 && chance.IntN(4) > 0 {
			l.Linger = []time.Duration{50 * time.Millisecond, 500 * time.Millisecond, mostLinger, mostLinger}[chance.IntN(4)]
		}
	}
}

// lingersLocked finds a process that goes on keeping a lock, as h, although another one stands in the queue. It returns for how much longer
// than otherwise h may be there, and no worker want it: idle says that it is so.
func (j *judge) lingersLocked(u *unit, h holder, p *process, idle bool) time.Duration {
	if !wire.Lingers(h.id) {
		return 0
	}
	wanted, from := false, max(p.trouble, u.s.trouble)
	for i, id := range u.state.queue {
		if q := u.of(id); q != nil && q != p && u.w.now() < u.state.kept[i] {
			wanted, from = true, max(from, q.trouble)
		}
	}
	bound, hears := outage, p.hearsLocked(u.s)
	if p.calmLocked(u.s) && !u.displaced() {
		bound = u.w.trips(12)
		if u.w.plan.Shape == BesideJava {
			bound += u.w.plan.open()
		}
	}
	if d := u.lasts("wanted "+h.id, idle && wanted && p.healthyLocked(u.s) && hears >= 0 && u.w.now() > u.excused, max(from, hears), bound); d > bound {
		j.failLocked("kept from others", "%v: %v keeps it as %s for %v, and another process waits", u, p, h.id, d)
	}
	return mostLinger
}

// keptLocked takes note of since when nothing has been in a caller's way but processes that keep the lock, and would hear who wants it.
func (u *unit) keptLocked() {
	if u.s == nil {
		return
	}
	kept := len(u.state.holders) > 0 && len(u.claims) == 0 && u.w.now() > u.excused && !u.displaced()
	for _, h := range u.state.holders {
		p := u.of(h.id)
		kept = kept && wire.Lingers(h.id) && p != nil && p.calmLocked(u.s) && p.hearsLocked(u.s) >= 0 && !u.stayed[h.id]
	}
	kept = kept && len(u.state.queue) == 0 && !slices.ContainsFunc(u.waits, func(x *wait) bool { return !x.once || x.unlocks })
	switch _, known := u.since["lingers"]; {
	case !kept:
		delete(u.since, "lingers")
	case !known:
		u.since["lingers"] = u.w.now()
	}
}

// unansweredLocked is for how much longer the TryLock may wait: for the answer of a holder that may linger, if something is wrong with a process,
// or one has begun to listen since, which may be the holder.
func (a *attempt) unansweredLocked() time.Duration {
	w := a.k.w
	for _, u := range a.h.units {
		lingers := slices.ContainsFunc(w.plan.Locks, func(l Lock) bool { return l.Name == u.name && l.Linger > 0 })
		if lingers && slices.ContainsFunc(w.all, func(p *process) bool { return p.java == nil && (!p.calmLocked(u.s) || p.hearsLocked(u.s) > a.began.at) }) {
			return 100*time.Millisecond + w.trips(16)
		}
	}
	return 0
}
