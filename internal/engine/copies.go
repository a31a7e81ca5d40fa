package engine

import (
	"time"

	"github.com/holdfast-go/holdfast/internal/command"
)

// A request without answer is sent again over another connection: at once if its connection is known to
// be dead (Stranded), and when it has been without answer for its patience (Overdue).

// copies is what is known of the copies of one request: Redis may execute each of them late, or never. It is guarded
// by entry.mu.
type copies struct {
	flying  uint8 // sent, and without reply
	dead    uint8 // of these, on connections that are known to be dead
	unclear bool  // one has ended without telling whether it ran
}

// maxCopies bounds the unanswered copies of one request. Each goes to a connection
// of its own, because the ones before may be dead. One that is known to be on a dead connection takes no room: it ends with
// go-redis's read timeout, which can be an hour. The executor bounds those (command.maxStranded).
const maxCopies = 4

// full reports whether no further copy may be sent before one has ended.
func (c *copies) full() bool { return c.flying-c.dead >= maxCopies }

// strands records that the connection of a copy is dead. roomless is the copy's: it takes no room any more, and
// may have ended before.
func (c *copies) strands(roomless *bool) {
	if !*roomless {
		*roomless = true
		c.dead++
	}
}

// ends records that a copy has ended.
func (c *copies) ends(roomless *bool) {
	c.flying--
	if *roomless {
		c.dead--
	}
	*roomless = true
}

// stray reports whether a copy may have run, or may still reach Redis.
func (c *copies) stray() bool { return c.flying > 0 || c.unclear }

// doubt records how a copy has ended that brought no answer.
func (c *copies) doubt(o command.Outcome) {
	c.unclear = c.unclear || o == command.Unknown || o == command.Failed
}

// Stranded is called by the executor when the connection is dead: the same claim is requested over another one.
func (t *try) Stranded(*command.Call) {
	e := t.hold.entry
	m := e.moment()
	e.mu.Lock()
	defer e.unlock(&m)
	t.strandedLocked(&m)
	e.stepLocked(&m)
}

func (t *try) strandedLocked(m *moment) {
	defer t.endLocked(m) // when the release of what it may have been granted has begun
	t.hold.strands(&t.roomless)
	b := t.hold.bid
	if b == nil || b.current != t {
		return
	}
	t.hold.entry.engine.Stats.Troubles.Add(1)
	b.stranded = t.sent.Sub(t.hold.entry.engine.Epoch) - t.tried
	t.abandonLocked(m)
}

// endLocked ends what lasts as long as t is under way: Close waits for it, and its process hears its inbox. Nothing that
// is to be released depends on a dead connection.
func (t *try) endLocked(m *moment) {
	if t.ended {
		return
	}
	t.ended = true
	if t.stands && !t.deaf {
		m.unrely()
	}
	m.order().close.more--
}

// abandonLocked has the claim asked for again, which finds the same grant; or given up if its caller has left.
func (t *try) abandonLocked(m *moment) {
	e, b := t.hold.entry, t.hold.bid
	b.current, b.notice = nil, nil
	if b.waiter == nil {
		e.undoLeftLocked(m, t.hold, false)
		return
	}
	e.missed.add(missedLock | missedPlaces | missedGrants)
}

// patience is how long t may stay unanswered. A repetition has what is left to the callers that ask
// once, but time for a round trip.
func (t *try) patience(m *moment) time.Duration {
	d := m.acquirePatience(t.hold.cfg, !t.stands)
	return max(d-t.tried, min(d, m.patienceFor(0)))
}

// Overdue is called by the executor when the reply takes too long. It ends the wait of TryLocks. For other callers
// the same claim is requested over another connection, since this one may be dead.
func (t *try) Overdue(*command.Call) {
	e := t.hold.entry
	m := e.moment()
	e.mu.Lock()
	defer e.unlock(&m)
	t.overdueLocked(&m)
	e.stepLocked(&m)
}

func (t *try) overdueLocked(m *moment) {
	e, b := t.hold.entry, t.hold.bid
	if b == nil || b.current != t {
		return
	}
	if b.waiter != nil {
		silence := m.silence()
		e.troubledLocked(silence)
		e.refuseLocked(m, t.n, Unavailable, silence)
	}
	if t.hold.bid == b && b.current == t { // else that has ended it
		t.abandonLocked(m)
	}
}
