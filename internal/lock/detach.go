package lock

import (
	"time"

	"github.com/holdfast-go/holdfast/internal/validity"
)

// A lease that is detached leaves its lock to the process that attaches it. That is a release that leaves the lock taken, as for
// WithHoldAtLeast (release.go), by the owner id of a ticket. Attach puts an owner id of its process in the place of that one, by one
// request that is not repeated for long. If its outcome is unknown, or of no use, the lock goes back to the ticket's owner id. In Redis the
// lock has one owner id all the time. No process trusts the ticket's.

// Detach is the event that a lease ends and leaves its lock to a ticket, of whose owner id this is the number, for d. why says why it
// does not; nil: begun is the request that does it.
func (lk *Lock) Detach(m *Moment, l *Lease, d time.Duration, ticket uint64, trace any) (begun *Repeated, why *Verdict) {
	h := l.hold
	if l.ended == nil && !m.Now().Before(l.Deadline()) {
		lk.overslept(m, h)
	}
	switch {
	case l.ended.Is(Released):
		return nil, Because(NotHeld)
	case l.ended != nil:
		return nil, l.ended
	case h.Terms.AtLeast > 0:
		return nil, Because(StaysTaken)
	case h.leases != l || l.next != nil:
		return nil, Because(HoldShared)
	case h.Converting():
		return nil, Because(Unavailable, Downgrading)
	}
	l.ended, m.Gone = givenUp, l
	h.drop(l)
	h.endLimit(m)
	lk.without(m, h, nil)
	r := newRelease(m, h, NothingLeft)
	r.why, r.Stay, r.lease = detached, Stay{Rest: d, Number: ticket}, l
	l.release = &r.Repeated
	lk.missed.add(missedLock) // a waiter may know of another end
	r.start(m, trace)
	lk.step(m)
	return &r.Repeated, nil
}

// Attaching is the event that a caller attaches the lock: it makes what the process is to have then, before the request. Attached or
// NotAttached follows.
func (lk *Lock) Attaching(m *Moment, t *Terms, k Kind) *Hold {
	lk.attaching++
	return newHold(m, lk, t, k)
}

// Attached is the event that Redis has put h in the place of a ticket, by a request sent at sent: the lock is the caller's, with that
// token. v is why the caller cannot have it.
func (lk *Lock) Attached(m *Moment, h *Hold, by *By, sent time.Time, token uint64) (l *Lease, v *Verdict) {
	switch {
	case lk.life != lifeOpen:
		return nil, Because(Closed)
	case !validity.Valid(m.Now(), validity.Deadline(sent, h.Terms.TTL)):
		return nil, Because(Unavailable, TooLate)
	}
	lk.attaching--
	if !lk.admits(h.Kind) {
		lk.displace(m, h)
	}
	h.phase, h.tenure = held, m.Age()
	if h.Terms.Fencing {
		h.token, h.Tokens = token-1, 1 // begin gives it to the lease
		m.effects().Saw = token
	}
	lk.take(h)
	h.Deadline = h.scheduleFrom(m, sent, h.Terms.TTL)
	lk.heed(m, h)
	if h.demand == demandUnknown && h.Terms.hears() {
		lk.ask(m, h) // those who wait have told the ticket's owner id, which no process hears
	}
	h.begin(m)
	l = h.grant(by, AtOnce, m.Age())
	if !h.Kind.Shared() {
		lk.refuse(m, lk.tries+1, NotAcquired, nil)
	}
	lk.step(m)
	return l, nil
}

// NotAttached is the event that the caller does not get the lock. If h may have it in Redis, it goes back to the ticket; else back is nil. A
// copy of the request may still be under way, or its outcome unknown, if unclear.
func (lk *Lock) NotAttached(m *Moment, h *Hold, back *Stay, unclear bool) {
	lk.attaching--
	h.phase = over
	if back != nil {
		h.unclear = unclear
		r := newRelease(m, h, NothingLeft)
		r.Stay = *back
		r.start(m, nil)
	}
	lk.step(m)
}
