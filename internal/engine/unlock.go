package engine

import (
	"context"
	"time"

	"github.com/holdfast-go/holdfast/internal/command"
)

// Unlock gives up a lease of one lock, which is valid if it was at the time at, and has not been ended since.
func (l *Lease) Unlock(at time.Time, trace context.Context) error {
	u := unlocking{lease: l}
	u.begin(at, trace)
	return u.wait()
}

// BeginUnlock is Unlock without the wait, which is what it returns.
func (l *Lease) BeginUnlock(at time.Time, trace context.Context) (wait func() error) {
	u := unlocking{lease: l}
	u.begin(at, trace)
	return u.wait
}

// unlocking is an Unlock.
type unlocking struct {
	lease    *Lease
	told     chan *Verdict // gets the answer of what it has begun; nil: the answer is err
	later    chan *Verdict // gets the answer of what an earlier Unlock began; nil: likewise
	patience time.Duration // for that
	err      error
}

// begin gives up the lease, which is valid if it was at the time at, when Unlock was called, and has not
// been ended since. It does not wait.
func (u *unlocking) begin(at time.Time, trace context.Context) {
	l := u.lease
	e := l.entry
	m := moment{engine: e.engine, at: at}
	e.mu.Lock()
	l.hold.stays = true
	if l.err != nil || !at.Before(l.deadlineLocked()) {
		u.endedLocked(&m)
		e.unlock(&m)
		return
	}
	m.gone = l.endLocked(givenUp)
	l.release = l.leaveLocked(&m, trace)
	if r := l.release; r != nil {
		r.lease = l
		u.told = e.engine.newReady()
		r.caller = u.told
	}
	e.unlock(&m)
	e.engine.Stats.Released.Add(1)
}

// endedLocked is for an Unlock of a lease that has ended: by an Unlock before this one, or early.
func (u *unlocking) endedLocked(m *moment) {
	l := u.lease
	if l.err == nil {
		l.entry.oversleptLocked(m, l.hold)
	}
	if l.end == Released {
		u.againLocked(m)
	} else {
		u.err = l.err
		l.settleLocked(m)
	}
}

// wait returns the answer of the Unlock.
func (u *unlocking) wait() error {
	switch {
	case u.later != nil:
		return u.waitAgain()
	case u.told == nil:
		return u.err
	}
	v := <-u.told
	u.lease.entry.engine.ready.Put(u.told)
	return u.lease.explain(v)
}

// leaveLocked takes a lease that has been given up off its hold. It returns the release or
// downgrade that this begins, nil if it begins none.
func (l *Lease) leaveLocked(m *moment, trace context.Context) *repeated {
	e, h := l.entry, l.hold
	switch last := h.drop(l); {
	case last:
		if r := e.passLocked(m, h, trace); r != nil {
			return &r.repeated
		}
	case h.phase == held && h.kind == WriteKind && !h.writes():
		d := e.downgradeLocked(m, h, trace)
		e.missed.add(missedLock)
		e.stepLocked(m)
		return &d.repeated
	}
	return nil
}

// settleLocked takes a lease that ended early off its hold, and with the last one releases what may still be in
// Redis: no other owner could get the lock before the TTL ends.
func (l *Lease) settleLocked(m *moment) {
	e, h := l.entry, l.hold
	if h.drop(l) && h.phase == owed {
		e.settleOwedLocked(m, h, l)
	}
}

// againLocked is for an Unlock after another: if the first one began a release, this one waits
// for its verdict as well. A release that was given up is begun again.
func (u *unlocking) againLocked(m *moment) {
	l := u.lease
	r := l.release
	if r == nil {
		u.err = l.explain(because(NotHeld))
		return
	}
	u.later = make(chan *Verdict, 1)
	u.patience = m.patienceFor(l.hold.cfg.TTL)
	if x, ok := r.handler.(*release); ok && r.settled && r.verdict.is(Unavailable) {
		x.restartLocked(m)
	}
	if r.settled {
		u.later <- r.again()
	} else {
		r.later = append(r.later, u.later)
		r.hastenLocked(m)
	}
}

// waitAgain is wait of an Unlock after another.
func (u *unlocking) waitAgain() error {
	l, e := u.lease, u.lease.entry
	select {
	case v := <-u.later:
		return l.explain(v)
	case <-time.After(u.patience):
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	r := l.release // a release, if it was a downgrade that has been abandoned since
	if v, ok := r.stopWaiting(u.later); ok {
		return l.explain(v)
	}
	cause := r.trouble
	if cause == nil {
		cause = command.ErrSilent
	}
	return l.explain(because(Unavailable, cause))
}

// GiveBack is Unlock without waiting for the answer: of a lease that was granted to a caller that had left, or is
// part of one that has ended.
func (l *Lease) GiveBack() {
	e := l.entry
	m := e.moment()
	e.mu.Lock()
	if l.err == nil {
		m.then(leaseReturned(l.endLocked(givenUp)))
		if r := l.leaveLocked(&m, nil); r != nil {
			r.lease = l
		}
	} else {
		l.settleLocked(&m)
	}
	e.unlock(&m)
}
