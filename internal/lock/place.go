package lock

import (
	"cmp"
	"slices"

	"github.com/holdfast-go/holdfast/internal/renewal"
)

// KeepBatch is how many places one request keeps. Where the queue has been deleted each of them reads all of
// it, so they are few.
const KeepBatch = 500

// Keep is one request for waiters of a fair lock to keep their places in its
// queue. Each process refreshes its own, KeepBatch per request, three times in the
// patience after which a silent one is dropped; the first of them asks for the lock
// itself now and then, which keeps its place as well.
type Keep struct {
	Lock    *Lock
	Claims  []*Hold
	Session uint64 // in which the process hears its inbox; 0: in none
}

// keepAll finds out which waiters of a fair lock have lost their place, or have
// been granted the lock unheard.
func (lk *Lock) keepAll(m *Moment) {
	var claims []*Hold
	for w := lk.waiters.head; w != nil; w = w.next {
		if b := w.bid; b.standing() {
			claims = append(claims, b.claim)
		}
	}
	for some := range slices.Chunk(claims, KeepBatch) {
		lk.Keep(m, some)
	}
}

// Keep is the event that the places of claims are to be kept.
func (lk *Lock) Keep(m *Moment, claims []*Hold) {
	lk.places.keeping++
	m.send(lk, Send{
		Request:  &Keep{Lock: lk, Claims: claims, Session: m.session()},
		Patience: m.askPatience(),
	})
}

func (r *Keep) Replied(m *Moment, c *Copy, reply *Reply) {
	lk := r.Lock
	for i, h := range r.Claims {
		switch {
		case h.bid == nil:
			// Granted meanwhile: what the schedule has now is the hold.
		case reply.Says != Listed:
			m.world.Schedule(h, renewal.Plan{What: renewal.Retry})
		default:
			m.world.Schedule(h, renewal.Plan{What: renewal.Confirm, At: reply.Sent, Set: m.set.Patience, TTL: m.set.Patience})
			lk.toldOfPlace(m, h, reply.Places[i])
		}
	}
	r.end(m, c)
}

// Overdue leaves it to the schedule, which hands the claims out again.
func (r *Keep) Overdue(m *Moment, c *Copy) { r.end(m, c) }

func (r *Keep) Stranded(m *Moment, c *Copy) {
	r.Lock.missed.add(missedGrants)
	r.end(m, c)
}

// end goes on with what waited for the answer.
func (r *Keep) end(m *Moment, c *Copy) {
	if c.flight != landed {
		c.flight = landed
		p := r.Lock.places
		p.keeping--
		p.awaited = max(p.awaited-1, 0)
	}
	r.Lock.join(m)
}

// toldOfPlace looks what has become of the place of h. The first waiter, or one that has been granted the lock without
// hearing of it, asks for the lock: that brings it the grant, or its place. The others return together.
func (lk *Lock) toldOfPlace(m *Moment, h *Hold, at Kept) {
	b := h.bid
	switch {
	case at == PlaceKept || b.waiter == nil || b.current != nil:
	case at == PlaceGranted || b.waiter == lk.waiters.head:
		lk.try(m, b.waiter)
	default:
		if !lk.missed.has(missedLosses) {
			lk.places.awaited = lk.places.keeping
		}
		b.lost = true
		lk.missed.add(missedLosses)
	}
}

// comeBack returns waiters to the queue that have lost their places there: their process was silent for too
// long, waiters of Redisson pushed them out, or the queue was deleted. Each request reads the whole queue, so they
// return together, after the answers to the requests that were under way. Those with the highest numbers return
// first, since each request puts its waiters in front.
func (lk *Lock) comeBack(m *Moment) {
	if lk.places.awaited > 0 || lk.alarm == alarmPause || !lk.missed.take(missedLosses) {
		return
	}
	j := &Join{Lock: lk, Place: SamePlace}
	for w := lk.waiters.tail; w != nil && len(j.Tries) < joinBatch; w = w.prev {
		b := w.bid
		if b == nil || !b.lost {
			continue
		}
		lk.missed.add(missedLosses) // until it has a verdict
		if b.current == nil && !b.claim.full() {
			j.Tries = append(j.Tries, lk.newTry(m, w, b))
		}
	}
	if len(j.Tries) > 0 {
		slices.SortFunc(j.Tries, func(a, b *Try) int { return cmp.Compare(a.Hold.Number, b.Hold.Number) })
		j.send(m)
	}
}

// Waiters of a fair lock that give up leave its queue in Redis. One alone leaves at once. Those
// that give up while its request is under way leave together behind it, one request at a time:
// many waiters often share a context, and taking one out of a long list costs Redis as much as taking
// out hundreds.

// leaveBatch is how many waiters one request takes out of the queue; Redis is busy with it for one to four
// milliseconds if 16,000 stand there.
const leaveBatch = 500

// depart gives up c, which has or may get a place in the queue in Redis, or the lock.
func (lk *Lock) depart(m *Moment, c *Hold) {
	m.effects().Report.More++
	lk.releasing++
	lk.latest.asked(m.Age())
	lk.places.leavers = append(lk.places.leavers, c)
	lk.sendLeavers(m)
}

// sendLeavers takes the next ones out of the queue, if no request is doing so. Those that came first stand
// in front mostly, where the script finds them sooner.
func (lk *Lock) sendLeavers(m *Moment) {
	p := lk.places
	if p.leaving != nil || len(p.leavers) == 0 {
		return
	}
	slices.SortFunc(p.leavers, func(a, b *Hold) int {
		return cmp.Compare(a.Number, b.Number)
	})
	n := min(len(p.leavers), leaveBatch)
	claims := p.leavers[:n:n]
	if p.leavers = p.leavers[n:]; len(p.leavers) == 0 {
		p.leavers = nil // and not the room of many
	}
	m.effects().Report.More -= len(claims) - 1 // the request counts as one
	r := newLeave(m, claims)
	p.leaving = &r.Repeated
	r.send(m, nil)
}

// newLeave makes the release of claims, which are counted in Lock.releasing.
func newLeave(m *Moment, claims []*Hold) *Release {
	now := m.Now()
	if len(claims) == 1 {
		r := newRelease(m, claims[0], PlaceLeft)
		r.colliding = 1
		return r
	}
	r := new(Release)
	r.isFor(m, claims[0], r)
	r.colliding = int32(len(claims))
	slices.SortStableFunc(claims, func(a, b *Hold) int { // those with a tombstone come first
		switch {
		case a.stray() == b.stray():
			return 0
		case a.stray():
			return -1
		}
		return 1
	})
	for _, h := range claims {
		left := h.leaves(PlaceLeft)
		if until := h.goneBy(m, left, now); until.After(r.until) {
			r.until = until
		}
		if left == CopiesLeft {
			r.Late++
		}
	}
	if i := slices.IndexFunc(claims, func(h *Hold) bool { return h.Terms.Fencing }); i >= 0 {
		r.Hold = claims[i] // its grant to the next waiter needs a token
	}
	r.Claims = claims
	return r
}
