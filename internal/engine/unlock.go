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
	lease *Lease
	r     *release      // begun; nil: none
	told  chan struct{} // sent to when r's answer is known; nil: it is, or there is none
	later chan *Verdict // the answer of a release that an earlier Unlock began; nil: there is none
	err   error         // the answer where there is no release
}

// begin gives up the lease, which is valid if it was at the time at, when Unlock was called, and has not
// been ended since. It does not wait.
func (u *unlocking) begin(at time.Time, trace context.Context) {
	l := u.lease
	e := l.entry
	e.mu.Lock()
	l.hold.stays = true
	if l.err != nil || !at.Before(l.deadlineLocked()) {
		announce := u.endedLocked()
		e.mu.Unlock()
		announce()
		return
	}
	gone := l.endLocked(givenUp)
	l.release = l.leaveLocked(at, trace)
	if u.r = l.release; u.r != nil {
		u.r.lease = l
		if !u.r.told {
			u.told = e.engine.newReady()
			u.r.caller = u.told
		}
	}
	e.mu.Unlock()
	gone.Announce()
	e.engine.Stats.Released.Add(1)
}

// endedLocked is for an Unlock of a lease that has ended: by an Unlock before this one, or early. The caller calls
// the result after unlocking.
func (u *unlocking) endedLocked() (announce func()) {
	l := u.lease
	announce = func() {}
	if l.err == nil {
		announce = l.entry.oversleptLocked(l.hold)
	}
	if l.end == Released {
		u.againLocked()
	} else {
		u.err = l.err
		l.settleLocked()
	}
	return announce
}

// wait returns the answer of the Unlock.
func (u *unlocking) wait() error {
	switch {
	case u.later != nil:
		return u.waitAgain()
	case u.r == nil:
		return u.err
	case u.told != nil:
		<-u.told
		u.lease.entry.engine.ready.Put(u.told)
	}
	return u.lease.explain(u.r.answer)
}

// leaveLocked takes a lease that has been given up off its hold. It returns the release or
// downgrade that this begins, nil if it begins none.
func (l *Lease) leaveLocked(now time.Time, trace context.Context) (r *release) {
	e, h := l.entry, l.hold
	switch last := h.drop(l); {
	case last:
		r = e.passLocked(h, now, trace)
	case h.phase == held && h.kind == WriteKind && !h.writes():
		r = e.downgradeLocked(h, now, trace)
		e.missed.add(missedLock)
		e.stepLocked()
	}
	return r
}

// settleLocked takes a lease that ended early off its hold, and with the last one releases what may still be in
// Redis: no other owner could get the lock before the TTL ends.
func (l *Lease) settleLocked() {
	e, h := l.entry, l.hold
	if h.drop(l) && h.phase == owed {
		e.settleOwedLocked(h)
	}
}

// againLocked is for an Unlock after another: if the first one began a release, this one waits
// for its verdict as well. A release that was given up is begun again.
func (u *unlocking) againLocked() {
	l := u.lease
	r := l.release
	if r == nil {
		u.err = l.explain(because(NotHeld))
		return
	}
	u.later = make(chan *Verdict, 1)
	if r.settled && r.downgrade == nil && r.verdict.is(Unavailable) {
		r.restartLocked()
	}
	if r.settled {
		u.later <- r.again()
	} else {
		r.later = append(r.later, u.later)
		r.hastenLocked()
	}
}

// waitAgain is wait of an Unlock after another.
func (u *unlocking) waitAgain() error {
	l, r := u.lease, u.lease.release
	e := l.entry
	select {
	case v := <-u.later:
		return l.explain(v)
	case <-time.After(e.engine.patienceFor(l.hold.cfg.TTL)):
	}
	e.mu.Lock()
	defer e.mu.Unlock()
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
	e.mu.Lock()
	var gone Ended
	if l.err == nil {
		gone = l.endLocked(givenUp)
		if r := l.leaveLocked(time.Now(), nil); r != nil {
			r.lease = l
		}
	} else {
		l.settleLocked()
	}
	e.mu.Unlock()
	gone.tell() // no caller has held it, or it was a part
}
