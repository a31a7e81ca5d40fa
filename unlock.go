package holdfast

import (
	"context"
	"slices"
	"time"
)

// Unlock gives the lease up. After the last lease of its owner the lock goes to the
// next caller in this process or back to Redis.
//
// It returns nil if this call, or an earlier copy of its request whose reply was
// lost, released the lock; ErrLeaseLost or ErrMaxHold if the lease had ended before,
// ErrClosed if Manager.Close ended it; ErrNotHeld after an Unlock that succeeded; and
// ErrUnavailable if Redis did not answer in time, or denied it. Without an answer the
// release goes on in the background, and calling Unlock again waits for it; denied (NOPERM,
// NOAUTH), it is not repeated. Renewal has stopped in any case, so that at worst the lock
// expires with its TTL.
//
// Unlock asks Redis as often as need be and blocks for at most a second (a quarter of a
// short lease's TTL, but 100 ms at the least; twelve round trips where Redis is far away), whether ctx is done or not: ctx carries the
// trace only. Several locks are released at the same time: all those of a Multi; of a Redlock's a
// majority, with which it returns, while the others go on.
func (l *Lease) Unlock(ctx context.Context) error {
	ctx, op := l.manager().telemetry.release(ctx, l, !part)
	err := l.giveUp(ctx, op)
	op.released(err)
	return err
}

// giveUp is Unlock as a part of op; nil: nobody observes it.
func (l *Lease) giveUp(ctx context.Context, op *operation) error {
	if l.group != nil {
		return l.group.unlock(ctx, l)
	}
	return l.unlock(op.trace())
}

// manager returns the manager of the lock, or of the first of several.
func (l *Lease) manager() *Manager {
	if l.group != nil {
		return l.group.as.m
	}
	return l.hold.entry.m
}

// unlockPart is Unlock of one of several locks.
func (l *Lease) unlockPart(ctx context.Context) error {
	_, op := l.hold.entry.m.telemetry.release(ctx, l, part)
	err := l.unlock(op.trace())
	op.released(err)
	return err
}

func (l *Lease) unlock(trace context.Context) error {
	e, h := l.hold.entry, l.hold
	now := time.Now()
	e.mu.Lock()
	if l.err == nil && !now.Before(l.deadlineLocked()) {
		defer e.oversleptLocked(h)()
	}
	switch {
	case l.err == ErrReleased:
		return l.unlockAgainLocked()
	case l.err != nil:
		err := l.err
		l.settleLocked()
		e.mu.Unlock()
		return err
	}
	gone := l.endLocked(ErrReleased)
	r := l.leaveLocked(now, trace)
	l.release = r
	var told chan struct{}
	if r != nil && !r.told {
		told = e.m.newReady()
		r.caller = told
	}
	e.mu.Unlock()
	gone.announce()
	e.m.stats.released.Add(1)
	if told != nil {
		<-told
		e.m.ready.Put(told)
	}
	if r == nil {
		return nil
	}
	return r.answer
}

// leaveLocked takes a lease that has been given up off its hold. It returns the release or
// downgrade that this begins, nil if it begins none.
func (l *Lease) leaveLocked(now time.Time, trace context.Context) (r *release) {
	e, h := l.hold.entry, l.hold
	switch last := h.drop(l); {
	case last:
		r = e.passLocked(h, now, trace)
	case h.phase == held && h.kind == writeKind && !h.writes():
		r = e.downgradeLocked(h, trace)
		e.ask = true
		e.stepLocked()
	}
	return r
}

// settleLocked takes a lease that ended early off its hold, and with the last one gives back
// what may still be in Redis: nobody else could be in before the TTL ends.
func (l *Lease) settleLocked() {
	e, h := l.hold.entry, l.hold
	if h.drop(l) && h.owed {
		h.owed = false
		e.ask = true
		e.releaseLocked(h, nil)
		e.stepLocked()
	}
}

// unlockAgainLocked is Unlock after Unlock. It unlocks the entry. If the first one began
// a release, this one waits for its verdict as well.
func (l *Lease) unlockAgainLocked() error {
	e, r := l.hold.entry, l.release
	if r == nil {
		e.mu.Unlock()
		return newLockError(ErrNotHeld, l.name)
	}
	c := r.askedAgainLocked()
	e.mu.Unlock()
	select {
	case err := <-c:
		return err
	case <-time.After(e.m.patienceFor(l.hold.cfg.ttl)):
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if err, ok := r.stopWaitingLocked(c); ok {
		return err
	}
	if r.answer != nil { // of the Unlock before: it says what the trouble is
		return r.answer
	}
	return newLockError(ErrUnavailable, l.name, errSilent)
}

// giveBack is Unlock without waiting for the answer: of a lease that was granted to a caller
// who had left, or is part of one that has ended.
func (l *Lease) giveBack() {
	e := l.hold.entry
	e.mu.Lock()
	var gone ended
	if l.err == nil {
		gone = l.endLocked(ErrReleased)
		l.leaveLocked(time.Now(), nil)
	} else {
		l.settleLocked()
	}
	e.mu.Unlock()
	gone.announce()
}

// askedAgainLocked is for an Unlock after another: it gets an answer when there is one.
func (r *release) askedAgainLocked() chan error {
	c := make(chan error, 1)
	if r.settled {
		c <- r.answerLaterLocked()
	} else {
		r.later = append(r.later, c)
	}
	return c
}

// stopWaitingLocked is for a repeated Unlock that does not wait any longer: a later success is
// to be told to another one. It returns the answer if it came at that moment.
func (r *release) stopWaitingLocked(c chan error) (answer error, ok bool) {
	select {
	case answer = <-c:
		return answer, true
	default:
		r.later = slices.DeleteFunc(r.later, func(x chan error) bool { return x == c })
		return nil, false
	}
}

// answerLaterLocked is the answer to a repeated Unlock. One call is told of the success,
// the others ErrNotHeld.
func (r *release) answerLaterLocked() error {
	if r.confirmed {
		return newLockError(ErrNotHeld, r.entry.name)
	}
	r.confirmed = r.verdict == nil
	return r.verdict
}
