package engine

import "time"

// Who comes back at once for a mutex that its process has just handed to another one steps
// aside for a moment, if the lock is likely to stay away for longer than that: its request
// would keep Redis, and the processors that they share, from telling the next owner. With a
// hold of 4 ms a hand-over between two processes takes a sixth less, and a third less at p99
// where Redis has no core of its own.
//
// Rejected alternative: the release itself takes a place in the queue for a later caller. That is one
// command instead of two for each acquisition, and a fifth fewer acquisitions. See "A process that wants
// a lock back" in docs/internals/DECISIONS.md.

// absence is what an entry remembers of a mutex that was handed to another process. It is
// guarded by entry.mu.
type absence struct {
	since   time.Time     // when it was handed over; zero: it has been back since
	stepped bool          // somebody has stepped aside since
	before  time.Duration // how long it stayed away the last time, but for that; 0: not known
}

const (
	// AsideFor is how long after a release whoever comes back asks at the earliest: longer
	// than it takes to tell the next owner. Only after an absence of awayFor or more: if the
	// next one is shorter, the lock is free until this is over, and that once.
	AsideFor = time.Millisecond
	AwayFor  = 2 * AsideFor
)

// handedOverLocked is called when a release has given the lock to another process.
func (e *entry) handedOverLocked() {
	if e.kind != MutexKind || e.waiters.Len() > 0 || e.closed {
		return
	}
	if e.absence == nil {
		e.absence = new(absence)
	}
	e.absence.since, e.absence.stepped = time.Now(), false
}

// stepAsideLocked reports whether the only waiter, who has just come, is to ask a moment later.
func (e *entry) stepAsideLocked() bool {
	a := e.absence
	if a == nil || a.before < AwayFor {
		return false
	}
	left := e.engine.aside - time.Since(a.since)
	if left <= 0 {
		return false
	}
	a.stepped = true
	e.yieldForLocked(left)
	return true
}

// returnedLocked is called when this process has the lock again.
func (e *entry) returnedLocked(now time.Time) {
	a := e.absence
	if a == nil || a.since.IsZero() {
		return
	}
	a.before, a.since = now.Sub(a.since), time.Time{}
	if a.stepped { // or a round would be long because the one before was
		a.before -= e.engine.aside
	}
}

// lingerLocked is called when nobody waits. It reports whether the entry is to stay for
// those who may come back, and would step aside then.
func (e *entry) lingerLocked() bool {
	if e.absence == nil || e.closed {
		return false
	}
	if e.hold != nil || e.releasing > 0 {
		return true
	}
	left := e.engine.aside - time.Since(e.absence.since)
	if left > 0 {
		e.armLocked(left)
		return true
	}
	e.absence = nil
	return false
}
