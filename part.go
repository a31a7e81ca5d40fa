package holdfast

import "time"

// A lease of one lock as a part of a lease of several.

// JoinWhole makes l a part of whole. It returns why not if l has ended.
func (l *engineLease) JoinWhole(whole *engineLease) error {
	l.mu().Lock()
	defer l.mu().Unlock()
	if l.err == nil {
		l.whole = whole
	}
	return l.err
}

// Detach takes a lease off the whole that it is part of, and reports whether it is still held.
func (l *engineLease) Detach() bool {
	l.mu().Lock()
	defer l.mu().Unlock()
	if l.err != nil {
		return false
	}
	l.whole = nil
	return true
}

// TookLocked has a lease of several locks say that it came about as the part did that took most.
func (l *engineLease) TookLocked(p *engineLease) {
	if p.how != grantedReentry && (l.how == grantedReentry || p.how > l.how) {
		l.how = p.how
	}
}

// SinceNowLocked has a lease of several locks begin.
func (l *engineLease) SinceNowLocked() { l.since = time.Since(l.Engine().epoch) }

// Waited has a lease of several locks say that it was waited for.
func (l *engineLease) Waited() { l.how = max(l.how, grantedAfterWait) }

// EndsByItself reports whether an option ends the lease: then it is not taken again.
func (l *engineLease) EndsByItself() bool { return l.hold.cfg.fixed || l.hold.cfg.maxHold > 0 }

// EndWasSet reports whether a part that has ended has come to the end that WithMaxHold or
// WithFixedLease set. Its holder may not have noticed, so its lock stays in Redis until Unlock or its TTL.
func (l *engineLease) EndWasSet() bool {
	l.mu().Lock()
	defer l.mu().Unlock()
	return l.end == maxHoldOver || l.hold.cfg.fixed && l.end == leaseLost && !l.deadlineLocked().After(time.Now())
}

// Lapse ends a part with the whole, whose end WithMaxHold has set if limited, else WithFixedLease: as EndWasSet says, if no
// other lease keeps its hold.
func (l *engineLease) Lapse(limited bool) {
	e, h := l.hold.entry, l.hold
	e.mu.Lock()
	alone := h.leases == l && l.next == nil
	announce := func() {}
	switch {
	case l.err != nil || !alone:
	case limited:
		announce = e.endByLimitLocked(h)
	default:
		lost := e.loseLocked(h, lostDeadline)
		announce = func() { e.announceLoss(lost, lostDeadline) }
		e.stepLocked()
	}
	over := l.err != nil // now, or because it had come to its own end
	e.mu.Unlock()
	announce()
	if !over {
		l.GiveBack()
	}
}

// Settle gives back what a lease that ended early may still have in Redis.
func (l *engineLease) Settle() { _ = l.Unlock(time.Now(), nil) }
