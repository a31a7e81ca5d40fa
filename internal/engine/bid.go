package engine

import (
	"time"

	"github.com/holdfast-go/holdfast/internal/wire"
)

// bid is what the entry has requested from Redis for a waiter. It is guarded by entry.mu.
type bid struct {
	claim    *hold         // nil: nothing yet; claim.waiter is the waiter
	current  *try          // whose verdict is awaited; nil: none, or it is overdue
	lost     bool          // fair: the claim has lost its place in the queue, as Redis says; it returns
	foreign  bool          // fair: one of Redisson's held the lock or stood before it
	notice   *wire.Notice  // a grant, told while a request is under way; nil: none
	stranded time.Duration // when the latest request began, after Engine.epoch, if its connection turned out to be dead; 0: it did not
	// A reading of the server's clock, milliseconds, and a time before that reading.
	clock  int64
	before time.Time
}

// standing reports whether the claim stands in the lock's queue in Redis.
func (b *bid) standing() bool { return b.claim != nil && b.claim.phase == standing }

// goneLocked cleans up behind a waiter that has just left the queue. A bid that it leaves
// behind goes to the next waiter if that can use it; else it is undone.
func (e *entry) goneLocked(w *waiter) {
	if w.Value.once {
		e.onces--
	}
	c := w.Value.claim
	switch {
	case c == nil:
	case e.adoptLocked(e.waiters.Front(), w):
	case w.Value.current != nil:
		// The verdict, which is on its way, tells what there is to undo.
		e.orphans++
		if e.kind != FairKind {
			e.orphan = w
		}
	default:
		e.undoLocked(c)
		if e.kind != FairKind {
			e.missed.add(missedLock)
		}
	}
}

// adoptLocked gives the bid that from has left behind to w, if it suits.
func (e *entry) adoptLocked(w, from *waiter) bool {
	if w == nil || w.Value.claim != nil || e.kind == FairKind {
		return false
	}
	c, h := from.Value.claim, w.Value.h
	if h.Kind != c.kind || *h.Terms != *c.cfg || !c.stray() && c.phase != standing {
		return false
	}
	w.Value.bid, from.Value.bid = from.Value.bid, bid{}
	c.waiter = w
	return true
}

// disownLocked ends the life of a bid whose waiter had left before its request ended,
// with a grant or without.
func (e *entry) disownLocked(c *hold, granted bool) {
	e.orphans--
	before := e.releasing
	if e.orphan == c.waiter {
		e.orphan = nil
	}
	if granted {
		e.endBidLocked(c)
		c.phase = over
		e.startReleaseLocked(c, false, nil)
	} else {
		e.undoLocked(c)
	}
	if e.kind != FairKind {
		e.missed.add(missedLock)
	}
	if e.releasing == before { // else that is to end, too
		e.gaveUpLocked(1)
	}
}

// endBidLocked ends the bid that c is the claim of, and reports whether it stood in the
// queue in Redis.
func (e *entry) endBidLocked(c *hold) (queued bool) {
	if queued = c.phase == standing; queued {
		e.engine.inbox.forget(c)
		e.engine.scheduler.Remove(&c.item) // fair: its place is not kept any more
	}
	c.waiter.Value.bid, c.waiter = bid{}, nil
	return queued
}

// undoLocked gives up a claim. One that Redis has refused for certain needs nothing; of
// any other a copy may have been executed or still be, or it stands in the queue: it
// is released, and a tombstone refuses copies that come later.
func (e *entry) undoLocked(c *hold) {
	queued := e.endBidLocked(c)
	c.phase = over
	switch {
	case !c.stray() && !queued:
	case e.places != nil:
		e.leaveLocked(c)
	default:
		e.startReleaseLocked(c, queued, nil)
	}
}
