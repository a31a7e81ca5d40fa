package engine

import (
	"cmp"
	"slices"

	"github.com/holdfast-go/holdfast/internal/protocol"
)

// Waiters of a fair lock that give up leave its queue in Redis. One alone leaves at once. Those
// that give up while its request is under way leave together behind it, one request at a time:
// many waiters often share a context, and taking one out of a long list costs Redis as much as taking
// out hundreds.

// leaveBatch is how many waiters one request takes out of the queue; Redis is busy with it for one to four
// milliseconds if 16,000 stand there.
const leaveBatch = 500

// leaveLocked gives up c, which has or may get a place in the queue in Redis, or the lock.
func (e *entry) leaveLocked(m *moment, c *hold) {
	m.order().close.more++
	e.releasing++
	e.known.asked(m.age())
	e.places.leavers = append(e.places.leavers, c)
	e.sendLeaversLocked(m)
}

// sendLeaversLocked takes the next ones out of the queue, if no request is doing so. Those that came first stand
// in front mostly, where the script finds them sooner.
func (e *entry) sendLeaversLocked(m *moment) {
	p := e.places
	if p.leaving != nil || len(p.leavers) == 0 {
		return
	}
	slices.SortFunc(p.leavers, func(a, b *hold) int {
		return cmp.Compare(a.number, b.number)
	})
	n := min(len(p.leavers), leaveBatch)
	claims := p.leavers[:n:n]
	if p.leavers = p.leavers[n:]; len(p.leavers) == 0 {
		p.leavers = nil // and not the room of many
	}
	m.order().close.more -= len(claims) - 1 // the request counts as one
	r := newLeaveLocked(m, claims)
	p.leaving = &r.repeated
	r.sendLocked(m, &r.call, nil)
}

// newLeaveLocked makes the release of claims, which are counted in entry.releasing.
func newLeaveLocked(m *moment, claims []*hold) *release {
	now := m.now()
	e := claims[0].entry
	if len(claims) == 1 {
		r := newReleaseLocked(m, claims[0], true)
		r.colliding = 1
		return r
	}
	r := &release{}
	r.isFor(m, claims[0], r)
	r.colliding = int32(len(claims))
	slices.SortStableFunc(claims, func(a, b *hold) int { // those with a tombstone come first
		switch {
		case a.stray() == b.stray():
			return 0
		case a.stray():
			return -1
		}
		return 1
	})
	late := 0
	for _, h := range claims {
		if until := h.goneBy(true, now); until.After(r.until) {
			r.until = until
		}
		if h.stray() {
			late++
		}
	}
	if i := slices.IndexFunc(claims, func(h *hold) bool { return h.cfg.Fencing }); i >= 0 {
		r.hold = claims[i] // its grant to the next waiter needs a token
	}
	r.script = protocol.Leave
	r.args = r.hold.withKeys(make([]any, 0, 13+len(claims)), protocol.Leave, true)
	r.args = append(r.args, e.engine.Publish, r.hold.offer(), burial.Milliseconds(), late, e.engine.owners)
	for _, h := range claims {
		r.args = append(r.args, h.tail())
	}
	return r
}
