package lock

import "time"

// A caller that wants a mutex again right after its process passed it to another one steps aside: its request
// waits for a millisecond. Sent at once, the request would compete with the message to the next owner, for Redis
// and for the cores. A caller steps aside only if the lock is likely to stay away for longer than that. With a
// hold of 4 ms a remote hand-off takes a sixth less, and a third less at p99 where Redis has no core of its own.
//
// Rejected alternative: the release itself takes a place in the queue for a later caller. That is one
// command instead of two for each acquisition, and a fifth fewer acquisitions. See "A process that wants
// a lock back" in docs/internals/DECISIONS.md.

// absence is what a lock remembers of a hold that was handed to another process.
type absence struct {
	since  time.Time     // when the lock left; zero: it has been back since
	aside  time.Duration // by how much a caller that stepped aside since has made it longer
	before time.Duration // how long it was the last time, without that; 0: not known
}

const (
	// AsideFor is how long after a release a caller that comes back waits before its request: longer than the
	// message to the next owner takes. It waits only if the last absence lasted for AwayFor or more. If the next
	// absence is shorter, the lock is free until AsideFor is over, and that once.
	AsideFor = time.Millisecond
	AwayFor  = 2 * AsideFor
)

// handedOver is called when a release has given the lock to another process.
func (lk *Lock) handedOver(m *Moment) {
	if !kinds[lk.Family].stepsAside || lk.waiters.len > 0 || lk.life != lifeOpen {
		return
	}
	if lk.absence == nil {
		lk.absence = new(absence)
	}
	lk.absence.since, lk.absence.aside = m.Now(), 0
}

// stepAside reports whether the only waiter, which has just come, sends its request a moment later.
func (lk *Lock) stepAside(m *Moment) bool {
	a := lk.absence
	if a.before < AwayFor {
		return false
	}
	left := m.set.Aside - m.Now().Sub(a.since)
	if left <= 0 {
		return false
	}
	a.aside = m.set.Aside
	lk.arm(m, alarmStepAside, left)
	return true
}

// What follows is called while the lock remembers that it was handed to another process.

// returned is called when this process has the lock again.
func (lk *Lock) returned(m *Moment) {
	a := lk.absence
	if a.since.IsZero() {
		return
	}
	a.before = m.Now().Sub(a.since) - a.aside // or a round would be long because the one before was
	a.since = time.Time{}
}

// awaitsReturn is called when no caller waits. It reports whether the lock stays, for a caller that may come back
// and would step aside then.
func (lk *Lock) awaitsReturn(m *Moment) bool {
	if lk.life != lifeOpen {
		return false
	}
	if lk.hold != nil || lk.releasing > 0 {
		return true
	}
	left := m.set.Aside - m.Now().Sub(lk.absence.since)
	if left > 0 {
		lk.arm(m, alarmPoll, left)
		return true
	}
	lk.absence = nil
	return false
}
