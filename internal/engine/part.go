package engine

import "time"

// A lease of one lock as a part of a lease of several.

// JoinWhole makes l a part of whole. It returns why not if l has ended.
func (l *Lease) JoinWhole(whole *Lease) error {
	l.mu().Lock()
	defer l.mu().Unlock()
	if l.err == nil {
		more := l.few()
		more.whole = whole
		l.rare = &more
	}
	return l.err
}

// Detach takes a lease off the whole that it is part of, and reports whether it is still held.
func (l *Lease) Detach() bool {
	l.mu().Lock()
	defer l.mu().Unlock()
	if l.err != nil {
		return false
	}
	more := l.few()
	more.whole = nil
	l.rare = &more
	return true
}

// TookLocked has a lease of several locks say that it came about as the part did that took most.
func (l *Lease) TookLocked(p *Lease) {
	if p.how != grantedReentry && (l.how == grantedReentry || p.how > l.how) {
		l.how = p.how
	}
}

// SinceNowLocked has a lease of several locks begin.
func (l *Lease) SinceNowLocked() { l.since = time.Since(l.Engine().Epoch) }

// WaitedLocked has a lease of several locks say that it was waited for.
func (l *Lease) WaitedLocked() { l.how = max(l.how, grantedAfterWait) }

// EndsByItself reports whether an option ends the lease: then it is not taken again.
func (l *Lease) EndsByItself() bool {
	l.mu().Lock()
	defer l.mu().Unlock()
	return l.hold.cfg.Fixed || l.hold.cfg.MaxHold > 0
}

// EndWasSet reports whether a part that has ended has come to the end that WithMaxHold or
// WithFixedLease set. Its holder may not have noticed, so its lock stays in Redis until Unlock or its TTL.
func (l *Lease) EndWasSet() bool {
	l.mu().Lock()
	defer l.mu().Unlock()
	return l.end == MaxHoldOver || l.hold.cfg.Fixed && l.end == LeaseLost && !l.deadlineLocked().After(time.Now())
}

// Lapse ends a part with the whole, whose end WithMaxHold has set if limited, else WithFixedLease: as EndWasSet says, if no
// other lease keeps its hold.
func (l *Lease) Lapse(limited bool) {
	e := l.entry
	m := e.moment()
	e.mu.Lock()
	h := l.hold
	alone := h.leases == l && l.next == nil
	switch {
	case l.err != nil || !alone:
	case limited:
		e.endByLimitLocked(&m, h)
	default:
		e.loseLocked(&m, h, lostDeadline)
		e.stepLocked(&m)
	}
	over := l.err != nil // now, or because it had come to its own end
	e.unlock(&m)
	if !over {
		l.GiveBack()
	}
}

// Settle releases what a lease that ended early may still have in Redis.
func (l *Lease) Settle() { _ = l.Unlock(time.Now(), nil) }
