package lock

import (
	"math"
	"time"

	"github.com/holdfast-go/holdfast/internal/renewal"
	"github.com/holdfast-go/holdfast/internal/wire"
)

// Try is one acquire request for a claim. A claim is requested again, with the same owner id, until it is granted
// or given up. So it does not matter which of its copies Redis executes, nor how often.
type Try struct {
	Hold     *Hold
	Sent     time.Time     // when it was made
	n        uint64        // Lock.tries when it was sent
	Session  uint64        // in which its process hears its inbox; 0: in none
	tried    time.Duration // before that, by the request that it repeats over another connection
	Patience time.Duration // how long it may stay unanswered
	Place    Place         // what it asks for, if the lock is not free
	carrier  carrier       // what it was sent by
	flight   flight        // Close waits for one that is under way
}

// carrier is what a try was sent by.
type carrier uint8

const (
	alone   carrier = iota
	asPoll          // likewise, because no message had come to a process that hears them
	inJoin          // a *Join
	inSweep         // one script for several locks
)

// relies reports whether the process keeps its inbox until t ends.
func (t *Try) relies() bool { return t.Place != NoPlace && t.Session != 0 }

// try asks Redis for the lock on behalf of w.
func (lk *Lock) try(m *Moment, w *Waiter) {
	if w == lk.waiters.head {
		lk.missed.take(missedLock)
		lk.disarm()
	}
	b := lk.bidOf(w)
	if b != nil && b.claim.full() {
		// Replied comes for each, no later than go-redis gives up.
		lk.refuse(m, lk.tries+1, Unavailable, m.world.Silence())
		return
	}
	t := lk.newTry(m, w, b)
	t.send(m, w.Trace)
}

// newTry makes a request for b, the bid for w, which is made as well if there is none.
func (lk *Lock) newTry(m *Moment, w *Waiter, b *Bid) *Try {
	var t *Try
	if b == nil {
		b = lk.newBid(m, w)
		t = &b.first
	} else {
		t = new(Try)
	}
	c, age := b.claim, m.Age()
	if c.Terms.Fencing && !c.stray() {
		c.Tokens = lk.tokensWanted(m, c)
	}
	lk.tries++
	t.Hold, t.n, t.Sent = c, lk.tries, m.Now()
	m.effects().Report.More++
	switch {
	case w.Once && b.asks == 0:
	case w.Once:
		t.Place = AskPlace
	case c.phase == standing:
		t.Place = SamePlace
	default:
		t.Place = NewPlace
	}
	t.Session = m.sessionFor(t.Place)
	if c.phase == standing && m.rang.polls() && m.knows().Inbox == Heard && age < b.ends {
		t.carrier = asPoll
	}
	if b.stranded != 0 {
		t.tried, b.stranded = age-b.stranded, 0
	}
	c.flying++
	lk.latest.asked(age)
	b.current = t
	return t
}

// maxTokens bounds the fencing tokens that are reserved with one grant.
const maxTokens = wire.TokensPerGrant

// tokensWanted is how many fencing tokens to reserve where there are any: one for each caller that waits,
// since the hold may be passed to them. Those not used are skipped.
func (lk *Lock) tokensWanted(m *Moment, c *Hold) uint8 {
	switch {
	case c.Terms.Linger > 0 && m.set.Slice > 0:
		return maxTokens // for callers to come
	case m.set.Slice == 0, c.Terms.Fixed, !kinds[c.Kind].passes:
		return 1
	}
	return uint8(min(lk.waiters.len, maxTokens))
}

// Replied is for a request alone. One of a *Join ends with that.
func (t *Try) Replied(m *Moment, _ *Copy, r *Reply) {
	t.replied(m, r)
	t.Hold.Lock.step(m)
}

func (t *Try) Overdue(m *Moment, _ *Copy) {
	t.overdue(m)
	t.Hold.Lock.step(m)
}

func (t *Try) Stranded(m *Moment, _ *Copy) {
	t.stranded(m)
	t.Hold.Lock.step(m)
}

// replied handles the end of the request.
func (t *Try) replied(m *Moment, r *Reply) {
	h := t.Hold
	lk := h.Lock
	if t.flight == underWay {
		defer t.end(m)
	}
	h.ends(&t.flight)
	h.doubt(r.Outcome)
	lk.answered(m, r)
	if h.bid == nil {
		return // a copy, or a message has granted it since, or it was given up with a tombstone
	}
	b := h.bid
	current := b.current == t
	var notice *wire.Notice
	if current {
		notice = b.notice
		b.current, b.notice = nil, nil
	}
	if r.Says == Granted || r.Says == Unacked || r.Says == Held && t.Place != NoPlace {
		m.effects().Wrote = true
	}
	if b.waiter == nil {
		if r.Says == Held && t.Place != NoPlace {
			h.phase = standing // for undo to see
		}
		lk.undoLeft(m, h, r.Says == Granted || r.Says == Unacked)
		return
	}
	switch {
	case r.Says == Unacked:
		lk.unacked(m, h, r)
	case r.Says == Granted:
		how := AfterWait
		if t.n == b.waiter.after+1 {
			how = AtOnce
		}
		switch { // it may be a grant by a release, found by asking
		case notice != nil && notice.Granted:
			h.Turn = uint8(min(notice.Turn, m.set.Turns))
		case h.phase == standing && t.Session == 0:
			h.Turn = uint8(m.set.Turns) // a process without an inbox cannot count them
		case kinds[h.Kind].company != exclusive && m.set.Chance(int64(m.set.Turns)) == 0:
			h.Turn = uint8(m.set.Turns) // nor can one that has come in beside others, which does not know that
		}
		lk.granted(m, h, r.Sent, h.Terms.TTL, r.Token, how)
		if t.carrier == asPoll && notice == nil && h.phase == held { // a message should have told of it
			lk.askWith(m, h, Question{Echo: echoTo(lk.Listening)})
		}
	case r.Outcome == Unsent:
		lk.fail(m, Closed, nil)
	case r.Outcome.Final(), r.Outcome == Barred && lk.barredForLong(m, r.Cause):
		lk.hopeless(m, t, Unavailable, r.Hopeless)
	case r.Outcome != Answered:
		lk.trouble(m, t, current, r)
	case r.Says == Held:
		lk.heldByOther(m, t, r, notice)
	case r.Says == OtherKind:
		lk.hopeless(m, t, WrongKind, r.Cause)
	default: // Buried: only a claim that was given up has a tombstone
		lk.endBid(m, h)
		h.phase = over
		lk.missed.add(missedLock)
	}
}

// heldByOther waits: for a grant, for a message, or for the time in which the
// holder's right ends by itself. A notice that came before this reply is a grant that
// came after this verdict.
func (lk *Lock) heldByOther(m *Moment, t *Try, v *Reply, notice *wire.Notice) {
	lk.latest.last = refusal
	if v.State == TooMany {
		lk.tooMany(m, t, v)
		return
	}
	b := t.Hold.bid
	if t.Place != NoPlace {
		b.clock, b.before, b.foreign, b.lost = v.Clock, t.Sent, v.Foreign, false
		b.ends = m.ageOf(t.Sent) + v.TTL
		if v.TTL < 0 {
			b.ends = math.MaxInt64
		}
		if t.Hold.phase == claimed {
			t.Hold.phase = standing
			if kinds[lk.Family].bidsEach { // others ask for them often enough
				m.world.Schedule(t.Hold, renewal.Plan{What: renewal.Renew, At: t.Sent, Set: m.set.Patience, TTL: m.set.Patience})
			}
			if early := m.world.Expect(t.Hold); early != nil {
				notice = early
			}
		}
	}
	asks := lk.asksHolder(m, b, v)
	if v.State != CrowdedQueue && !asks {
		lk.turnDown(m, t)
	}
	if notice != nil && (!notice.Granted || notice.Clock >= v.Clock) {
		lk.noticed(m, t.Hold, *notice)
		return
	}
	if now := m.session(); t.Place != NoPlace && now != 0 && now != t.Session {
		// The inbox was subscribed since, or again: a grant in between was missed, and no other message follows.
		lk.missed.add(missedPlaces | missedGrants)
		if v.State != LeftOpen {
			lk.missed.add(missedLock)
		}
	}
	if v.State == CrowdedQueue {
		lk.missed.add(missedLock | missedPlaces)
		return
	}
	front := lk.waiters.head
	if front == nil || t.Hold.bid == nil || front != b.waiter {
		// A caller that asked once was the first; or it was not the first's request.
		if front != nil && lk.bidOf(front) == nil {
			lk.missed.add(missedLock)
		}
		return
	}
	if asks {
		lk.awaitAnswer(m, t, v)
		return
	}
	if t.Place == NoPlace {
		// Taken over from a caller that asked once: the one that waits has no place yet.
		lk.missed.add(missedLock)
		return
	}
	if v.State == LeftOpen {
		// It is the turn of Redisson, or of the first. Asking again at once, for what may have been
		// missed while a channel was subscribed, would end it: the script takes that for a poll.
		lk.arm(m, alarmGiveWay, v.TTL)
	}
	lk.Listening = v.Foreign
	if !lk.alarm.yields() && lk.alarm != alarmPause { // else another one follows in a moment
		lk.arm(m, alarmPoll, lk.PollAfter(m, v.TTL))
	}
}

// stranded is for a connection that is dead: the same claim is requested over another one.
func (t *Try) stranded(m *Moment) {
	if t.flight != underWay {
		return
	}
	defer t.end(m) // when the release of what it may have been granted has begun
	t.Hold.strands(&t.flight)
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
	if t.relies() {
		m.effects().Unrelied++
	}
	m.effects().Report.More--
}

// abandon has the claim asked for again, which finds the same grant; or given up if its caller has left.
func (t *Try) abandon(m *Moment) {
	lk, b := t.Hold.Lock, t.Hold.bid
	b.current, b.notice = nil, nil
	if b.waiter == nil {
		lk.undoLeft(m, t.Hold, false)
		return
	}
	lk.missed.add(missedLock | missedPlaces | missedGrants)
}

// send sends it. A repetition may stay unanswered for what is left to the callers that ask once, but for a round trip.
func (t *Try) send(m *Moment, trace any) {
	full := m.acquirePatience(t.Hold.Terms, t.Place == NoPlace)
	t.Patience = full
	if t.tried > 0 {
		t.Patience = max(full-t.tried, min(full, m.patienceFor(0)))
	}
	s := Send{Request: t, Patience: t.Patience, Trace: trace}
	if t.Place == NoPlace {
		s.Dial = m.dialFor(t.Hold.Terms, full-t.Patience)
	}
	m.send(t.Hold.Lock, s)
}

// overdue is for a reply that takes too long. It ends the wait of TryLocks. For other callers
// the same claim is requested over another connection, since this one may be dead.
func (t *Try) overdue(m *Moment) {
	lk, b := t.Hold.Lock, t.Hold.bid
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
