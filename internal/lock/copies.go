package lock

import "time"

// A request without answer is sent again over another connection: at once if its connection is known to
// be dead (stranded), and when it has been without answer for its patience (overdue).

// copies is what is known of the copies of one request: Redis may execute each of them late, or never.
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
func (c *copies) doubt(o Outcome) {
	c.unclear = c.unclear || o == Unknown || o == Failed
}

// stranded is for a connection that is dead: the same claim is requested over another one.
func (t *Try) stranded(m *Moment) {
	defer t.end(m) // when the release of what it may have been granted has begun
	t.Hold.strands(&t.roomless)
	b := t.Hold.bid
	if b == nil || b.current != t {
		return
	}
	m.effects().Counts.Troubles++
	b.stranded = m.ageOf(t.Sent) - t.tried
	t.abandon(m)
}

// end ends what lasts as long as t is under way: Close waits for it, and its process hears its inbox. Nothing that
// is to be released depends on a dead connection.
func (t *Try) end(m *Moment) {
	if t.ended {
		return
	}
	t.ended = true
	if t.Stands && !t.Deaf {
		m.world.Unrely()
	}
	m.effects().Report.More--
}

// abandon has the claim asked for again, which finds the same grant; or given up if its caller has left.
func (t *Try) abandon(m *Moment) {
	lk, b := t.Hold.lock, t.Hold.bid
	b.current, b.notice = nil, nil
	if b.waiter == nil {
		lk.undoLeft(m, t.Hold, false)
		return
	}
	lk.missed.add(missedLock | missedPlaces | missedGrants)
}

// patient is how long t may stay unanswered. A repetition has what is left to the callers that ask
// once, but time for a round trip.
func (t *Try) patient(m *Moment) time.Duration {
	d := m.world.AcquirePatience(t.Hold.Terms, !t.Stands)
	return max(d-t.tried, min(d, m.world.PatienceFor(0)))
}

// overdue is for a reply that takes too long. It ends the wait of TryLocks. For other callers
// the same claim is requested over another connection, since this one may be dead.
func (t *Try) overdue(m *Moment) {
	lk, b := t.Hold.lock, t.Hold.bid
	if b == nil || b.current != t {
		return
	}
	if b.waiter != nil {
		silence := m.world.Silence()
		lk.troubled(m, silence)
		lk.refuse(m, t.n, Unavailable, silence)
	}
	if t.Hold.bid == b && b.current == t { // else that has ended it
		t.abandon(m)
	}
}
