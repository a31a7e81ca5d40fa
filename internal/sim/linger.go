package sim

import (
	"slices"
	"time"
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

// unansweredLocked is for how much longer the TryLock may wait: for the answer of a holder that may linger, if something is wrong with a process,
// or one has begun to listen since, which may be the holder.
func (a *attempt) unansweredLocked() time.Duration {
	w := a.k.w
	for _, u := range a.h.units {
		lingers := slices.ContainsFunc(w.plan.Locks, func(l Lock) bool { return l.Name == u.Name && l.Linger > 0 })
		if lingers && slices.ContainsFunc(w.all, func(p *process) bool { return !p.calmLocked(u.s) || p.hearsLocked(u.s) > a.began.at }) {
			return 100*time.Millisecond + w.trips(16)
		}
	}
	return 0
}
