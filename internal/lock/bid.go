package lock

import (
	"time"

	"github.com/holdfast-go/holdfast/internal/renewal"
	"github.com/holdfast-go/holdfast/internal/wire"
)

// bid is what the lock has requested in Redis. A mutex and a read-write lock have one (Lock.bid), for the first waiter:
// it stands for all, and when that waiter leaves, the next one takes it over. A fair lock has one for each waiter.
type Bid struct {
	claim    *Hold         // claim.bid is the bid
	waiter   *Waiter       // the waiter that a grant is for; nil: it has left, and the answer says what to undo
	current  *Try          // whose verdict is awaited; nil: none, or it is overdue
	notice   *wire.Notice  // a grant, told while a request is under way; nil: none
	stranded time.Duration // when the latest request began, after Settings.Epoch, if its connection turned out to be dead; 0: it did not
	// A reading of the server's clock, milliseconds, and a time before that reading.
	clock  int64
	before time.Time

	asks    time.Duration // not fair: until when, after Settings.Epoch, TryLocks wait for the holder's answer; 0: they do not
	lost    bool          // fair: the claim has lost its place in the queue, as Redis says; it returns
	foreign bool          // fair: one of Redisson's held the lock or stood before it
	ends    time.Duration // when the other owner's TTL ends if it is not prolonged, after Settings.Epoch; no message tells of that

	first Try // the first request, which needs no allocation of its own
}

// bidOf returns the bid for w; nil: there is none.
func (lk *Lock) bidOf(w *Waiter) *Bid {
	switch {
	case kinds[lk.Family].bidsEach:
		return w.bid
	case lk.bid != nil && lk.bid.waiter == w:
		return lk.bid
	}
	return nil
}

// newBid makes a claim for w.
func (lk *Lock) newBid(m *Moment, w *Waiter) *Bid {
	b := &Bid{claim: newHold(m, lk, w.Terms, w.Kind), waiter: w}
	b.claim.bid = b
	if kinds[lk.Family].bidsEach {
		w.bid = b
	} else {
		lk.bid = b
	}
	return b
}

// pass makes the bid w's. A TryLock waits for an answer of the holder's for as long as the one before it.
func (b *Bid) pass(w *Waiter) { b.waiter, b.asks = w, 0 }

// standing reports whether the claim stands in the lock's queue in Redis.
func (b *Bid) standing() bool { return b != nil && b.claim.phase == standing }

// asking reports whether the verdict of a request is awaited.
func (b *Bid) asking() bool { return b != nil && b.current != nil }

// suits reports whether w can take the bid over. One that Redis has refused for certain is worth nothing.
func (b *Bid) suits(w *Waiter) bool {
	c := b.claim
	return w.Kind == c.Kind && w.Terms.suit(c.Terms) && (c.stray() || c.phase == standing)
}

// leaveBid is called when w has just left the queue. The next waiter takes its bid over if it can use it; else the
// bid is undone.
func (lk *Lock) leaveBid(m *Moment, w *Waiter) {
	if w.Once {
		lk.onces--
	}
	b, front, each := lk.bidOf(w), lk.waiters.head, kinds[lk.Family].bidsEach
	switch {
	case b == nil:
	case !each && front != nil && b.suits(front):
		b.pass(front)
	case b.current != nil: // its verdict, which is on its way, tells what there is to undo
		b.waiter, w.bid = nil, nil
		lk.releasing++
	default:
		lk.undo(m, b.claim)
		if !each {
			lk.missed.add(missedLock)
		}
	}
}

// undoLeft undoes a bid whose waiter has left, when its request has ended, with a grant or without.
func (lk *Lock) undoLeft(m *Moment, c *Hold, granted bool) {
	before := lk.releasing
	if !kinds[lk.Family].bidsEach {
		lk.missed.add(missedLock)
	}
	if granted {
		lk.endBid(m, c)
		c.phase = over
		lk.startRelease(m, c, NothingLeft, nil)
	} else {
		lk.undo(m, c)
	}
	lk.releasing--
	if lk.releasing < before { // else that is to end, too
		lk.gaveUp(1)
	}
}

// endBid ends the bid that c is the claim of. It returns what may be left of the bid in Redis, beside late copies: a place in the queue.
func (lk *Lock) endBid(m *Moment, c *Hold) (left Left) {
	each := kinds[lk.Family].bidsEach
	if c.phase == standing {
		left = PlaceLeft
		m.world.Forget(c)
		if each {
			m.world.Schedule(c, renewal.Plan{What: renewal.Drop}) // its place is not kept any more
		}
	}
	switch w := c.bid.waiter; {
	case !each:
		lk.bid = nil
	case w != nil:
		w.bid = nil
	}
	c.bid = nil
	return left
}

// undo gives up a claim. One that Redis has refused for certain needs nothing; of
// any other a copy may have been executed or still be, or it stands in the queue: it
// is released, and a tombstone refuses copies that come later.
func (lk *Lock) undo(m *Moment, c *Hold) {
	left := lk.endBid(m, c)
	c.phase = over
	switch {
	case !c.stray() && left == NothingLeft:
	case kinds[lk.Family].bidsEach:
		lk.depart(m, c)
	default:
		lk.startRelease(m, c, left, nil)
	}
}
