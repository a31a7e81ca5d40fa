package lock

import (
	"cmp"
	"slices"
)

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
	lk.known.asked(m.Age())
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

// hasLeft goes on with the next ones if r took waiters out of the queue.
func (lk *Lock) hasLeft(m *Moment, r *Repeated) {
	if p := lk.places; lk.rules().bidsEach && p.leaving == r {
		p.leaving = nil
		lk.sendLeavers(m)
	}
}

// newLeave makes the release of claims, which are counted in Lock.releasing.
func newLeave(m *Moment, claims []*Hold) *Release {
	now := m.Now()
	if len(claims) == 1 {
		r := newRelease(m, claims[0], true)
		r.colliding = 1
		return r
	}
	r := m.world.NewRelease()
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
		if until := h.goneBy(m, true, now); until.After(r.until) {
			r.until = until
		}
		if h.stray() {
			r.Late++
		}
	}
	if i := slices.IndexFunc(claims, func(h *Hold) bool { return h.Terms.Fencing }); i >= 0 {
		r.Hold = claims[i] // its grant to the next waiter needs a token
	}
	r.Claims = claims
	return r
}
