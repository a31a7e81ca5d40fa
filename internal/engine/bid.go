package engine

import (
	"time"

	"github.com/holdfast-go/holdfast/internal/wire"
)

// bid is what the entry has requested in Redis. A mutex and a read-write lock have one (entry.bid), for the first waiter:
// it stands for all, and when that waiter leaves, the next one takes it over. A fair lock has one for each waiter. It
// is guarded by entry.mu.
type bid struct {
	claim    *hold         // claim.bid is the bid
	waiter   *waiter       // the waiter that a grant is for; nil: it has left, and the answer says what to undo
	current  *try          // whose verdict is awaited; nil: none, or it is overdue
	notice   *wire.Notice  // a grant, told while a request is under way; nil: none
	stranded time.Duration // when the latest request began, after Engine.Epoch, if its connection turned out to be dead; 0: it did not
	// A reading of the server's clock, milliseconds, and a time before that reading.
	clock  int64
	before time.Time

	lost    bool // fair: the claim has lost its place in the queue, as Redis says; it returns
	foreign bool // fair: one of Redisson's held the lock or stood before it

	first try // the first request, which needs no allocation of its own
}

// bidOf returns the bid for w; nil: there is none.
func (e *entry) bidOf(w *waiter) *bid {
	switch {
	case e.places != nil:
		return w.Value.bid
	case e.bid != nil && e.bid.waiter == w:
		return e.bid
	}
	return nil
}

// newBidLocked makes a claim for w.
func (e *entry) newBidLocked(w *waiter) *bid {
	h := w.Value.h
	b := &bid{claim: newHold(e, h.Terms, h.wireKeys(), h.Kind), waiter: w}
	b.claim.bid = b
	if e.places != nil {
		w.Value.bid = b
	} else {
		e.bid = b
	}
	return b
}

// standing reports whether the claim stands in the lock's queue in Redis.
func (b *bid) standing() bool { return b != nil && b.claim.phase == standing }

// asking reports whether the verdict of a request is awaited.
func (b *bid) asking() bool { return b != nil && b.current != nil }

// suits reports whether w can take the bid over. One that Redis has refused for certain is worth nothing.
func (b *bid) suits(w *waiter) bool {
	c, h := b.claim, w.Value.h
	return h.Kind == c.kind && *h.Terms == *c.cfg && (c.stray() || c.phase == standing)
}

// leftBehind counts the bids whose waiters have left. Their requests are under way.
func (e *entry) leftBehind() int32 {
	switch {
	case e.places != nil:
		return e.places.left
	case e.bid != nil && e.bid.waiter == nil:
		return 1
	}
	return 0
}

// leftLocked is called when w has just left the queue. The next waiter takes its bid over if it can use it; else the
// bid is undone.
func (e *entry) leftLocked(m *moment, w *waiter) {
	if w.Value.once {
		e.onces--
	}
	b, front := e.bidOf(w), e.waiters.Front()
	switch {
	case b == nil:
	case e.places == nil && front != nil && b.suits(front):
		b.waiter = front
	case b.current != nil: // its verdict, which is on its way, tells what there is to undo
		b.waiter = nil
		if e.places != nil {
			w.Value.bid = nil
			e.places.left++
		}
	default:
		e.undoLocked(m, b.claim)
		if e.places == nil {
			e.missed.add(missedLock)
		}
	}
}

// undoLeftLocked undoes a bid whose waiter has left, when its request has ended, with a grant or without.
func (e *entry) undoLeftLocked(m *moment, c *hold, granted bool) {
	before := e.releasing
	if e.places != nil {
		e.places.left--
	} else {
		e.missed.add(missedLock)
	}
	if granted {
		e.endBidLocked(m, c)
		c.phase = over
		e.startReleaseLocked(m, c, false, nil)
	} else {
		e.undoLocked(m, c)
	}
	if e.releasing == before { // else that is to end, too
		e.gaveUpLocked(1)
	}
}

// endBidLocked ends the bid that c is the claim of, and reports whether it stood in the
// queue in Redis.
func (e *entry) endBidLocked(m *moment, c *hold) (queued bool) {
	if queued = c.phase == standing; queued {
		m.forget(c)
		m.schedule(plan{hold: c, what: planDrop}) // fair: its place is not kept any more
	}
	switch w := c.bid.waiter; {
	case e.places == nil:
		e.bid = nil
	case w != nil:
		w.Value.bid = nil
	}
	c.bid = nil
	return queued
}

// undoLocked gives up a claim. One that Redis has refused for certain needs nothing; of
// any other a copy may have been executed or still be, or it stands in the queue: it
// is released, and a tombstone refuses copies that come later.
func (e *entry) undoLocked(m *moment, c *hold) {
	queued := e.endBidLocked(m, c)
	c.phase = over
	switch {
	case !c.stray() && !queued:
	case e.places != nil:
		e.leaveLocked(m, c)
	default:
		e.startReleaseLocked(m, c, queued, nil)
	}
}
