package engine

import (
	"time"

	"github.com/holdfast-go/holdfast/internal/lock"
)

// A lease of one lock as a part of a lease of several.

// JoinWhole makes l a part of whole. It returns why not if l has ended.
func (l *Lease) JoinWhole(whole *Lease) error {
	l.mu().Lock()
	defer l.mu().Unlock()
	err := l.errLocked()
	if err == nil {
		l.moreLocked().whole = whole
	}
	return err
}

// Detach takes a lease off the whole that it is part of, and reports whether it is still held.
func (l *Lease) Detach() bool {
	l.mu().Lock()
	defer l.mu().Unlock()
	if l.in().End() != nil {
		return false
	}
	l.moreLocked().whole = nil
	return true
}

// TookLocked has a lease of several locks say that it came about as the part did that took most.
func (l *Lease) TookLocked(p *Lease) {
	if how, its := l.in().Mode(), p.in().Mode(); its != lock.Reentry && (how == lock.Reentry || its > how) {
		l.in().SetMode(its)
	}
}

// SinceNowLocked has a lease of several locks begin.
func (l *Lease) SinceNowLocked() { l.in().SetSince(time.Since(l.Engine().Epoch)) }

// WaitedLocked has a lease of several locks say that it was waited for.
func (l *Lease) WaitedLocked() { l.in().SetMode(max(l.in().Mode(), lock.AfterWait)) }

// EndsByItself reports whether an option ends the lease: then it is not taken again.
func (l *Lease) EndsByItself() bool {
	l.mu().Lock()
	defer l.mu().Unlock()
	return l.in().EndsByItself()
}

// EndWasSet reports whether a part that has ended has come to the end that WithMaxHold or
// WithFixedLease set. Its holder may not have noticed, so its lock stays in Redis until Unlock or its TTL.
func (l *Lease) EndWasSet() bool {
	l.mu().Lock()
	defer l.mu().Unlock()
	return l.in().EndWasSet(time.Now())
}

// Lapse ends a part with the whole, whose end WithMaxHold has set if limited, else WithFixedLease: as EndWasSet says, if no
// other lease keeps its hold.
func (l *Lease) Lapse(limited bool) {
	e := l.entry()
	m := e.moment()
	e.mu.Lock()
	over := e.lock.Lapse(&m, l.in(), limited)
	e.unlock(&m)
	if !over {
		l.GiveBack()
	}
}

// Settle releases what a lease that ended early may still have in Redis.
func (l *Lease) Settle() { _ = l.Unlock(time.Now(), nil) }
