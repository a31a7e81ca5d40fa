package lock

import (
	"github.com/holdfast-go/holdfast/internal/renewal"
	"github.com/holdfast-go/holdfast/internal/validity"
)

// How a hold ends without a release: it is lost, or its time is over.

// without takes h out of the lock and the schedule. end is why it ended, nil if it is released.
func (lk *Lock) without(m *Moment, h *Hold, end *Verdict) {
	lk.unheed(m, h)
	h.phase = over
	lk.latest.since = 0
	if lk.hold == h {
		lk.hold = nil
	} else {
		lk.shared.remove(m, h, end)
	}
	m.world.Schedule(h, renewal.Plan{What: renewal.Drop})
}

// endHold ends h and all its leases, without telling Redis.
func (lk *Lock) endHold(m *Moment, h *Hold, end *Verdict) []*Lease {
	if !h.phase.owns() {
		return nil
	}
	h.endLimit(m)
	lk.without(m, h, end)
	var all []*Lease
	for l := h.leases; l != nil; l = l.next {
		l.ended = end
		all = append(all, l)
	}
	lk.missed.add(missedLock)
	return all
}

// lose ends a hold that cannot be trusted any more.
func (lk *Lock) lose(m *Moment, h *Hold, reason Reason) {
	if !h.phase.owns() {
		return // a late answer about a hold that was given up
	}
	if all := lk.endHold(m, h, lostBy(reason)); len(all) > 0 {
		m.end(Ended{Lock: lk, Lease: all[0], Leases: all, How: Lost, Reason: reason})
	}
	switch {
	case reason == LostDeadline:
		lk.owe(m, h)
	case h.stray(): // a late copy of its acquire could take the lock for no caller
		lk.startRelease(m, h, NothingLeft, nil)
	}
}

// displace ends the holds beside which h has been granted, and which do not admit it. The order of the replies does not say which of
// them Redis has now. So these are released, each by its owner id, with the place that it may have got again. If
// it was h that was deleted, its renewal finds out.
func (lk *Lock) displace(m *Moment, h *Hold) {
	for _, x := range lk.Holds() {
		if x.Kind.Shared() && h.Kind.Shared() {
			continue // they can be beside each other
		}
		lk.lose(m, x, LostStolen)
		if !x.stray() { // else lose has begun its release, even if only the downgrade was unanswered
			lk.startRelease(m, x, PlaceLeft, nil)
		}
	}
}

// ReachLimit is the event that the timer of l has fired: the leases of the owner whose limit it is end, if it still has the hold.
func (lk *Lock) ReachLimit(m *Moment, l *Limit) {
	if h := l.hold; h.phase == held && h.Limit == l {
		lk.endByLimit(m, h)
	}
}

// endByLimit ends h, which stays in Redis until Unlock or its TTL.
func (lk *Lock) endByLimit(m *Moment, h *Hold) {
	end := Ended{Lock: lk, Leases: lk.endHold(m, h, Because(MaxHoldOver)), How: LimitReached, Limit: h.Terms.MaxHold}
	if len(end.Leases) > 0 {
		end.Lease = end.Leases[0]
	}
	m.end(end)
	lk.owe(m, h)
	lk.step(m)
}

// overslept ends h, whose end has passed without its timers having run: this process stood
// still.
func (lk *Lock) overslept(m *Moment, h *Hold) {
	if l := h.Limit; l != nil && l.At.Before(h.Deadline) {
		lk.endByLimit(m, h)
		return
	}
	lk.lose(m, h, LostDeadline)
	lk.step(m)
}

// closeHold releases h, whose leases end with ErrClosed. If the time of h is over, it ends as it does by the
// timer, which did not run.
func (lk *Lock) closeHold(m *Moment, h *Hold) {
	leased, converting := h.leases != nil, h.Converting()
	if leased && !m.Now().Before(h.leases.Deadline()) {
		lk.overslept(m, h)
		return
	}
	h.unlocked = leased
	m.end(Ended{Lock: lk, Leases: lk.endHold(m, h, Because(Closed)), How: ByClose})
	r := lk.startRelease(m, h, NothingLeft, nil)
	if leased && !converting { // else the downgrade became a release too, and one of the two finds nothing
		r.why = unlocked
	}
}

// Deleted is the event that the lock was deleted in Redis: all its holds end.
func (lk *Lock) Deleted(m *Moment) {
	for _, h := range lk.Holds() {
		lk.lose(m, h, LostDeleted)
	}
	lk.step(m)
}

// NotFound is the event that a renewal did not find h in Redis.
func (lk *Lock) NotFound(m *Moment, h *Hold, reason Reason) {
	lk.lose(m, h, reason)
	lk.step(m)
}

// Expire is the event that a deadline in the schedule has passed.
func (lk *Lock) Expire(m *Moment, h *Hold) {
	switch {
	case h.phase == over:
	case h.phase == owed:
		if h.prolongable() && !m.world.Scheduled(h) { // else it has ended while this was about to be called
			lk.settleOwed(m, h, h.leases)
		}
	case m.world.Scheduled(h):
		// It was the end of a place in a queue, and the lock has been granted since.
	case h.phase == standing:
		// Redis has been silent for long and the place may be lost, not the claim.
		m.world.Schedule(h, renewal.Plan{What: renewal.Renew, At: m.Now(), Set: m.set.Patience, TTL: m.set.Patience})
	default:
		lk.lose(m, h, LostDeadline)
		lk.step(m)
	}
}

// owe is for h, which has ended early and may still be in Redis: Unlock releases it. Redis may execute a
// renewal or an Extend after the deadline, and its answer can be lost, which would keep the lock for another TTL.
// So h is released at the end of its known TTL, if Unlock has not been called by then.
func (lk *Lock) owe(m *Moment, h *Hold) {
	h.phase = owed
	if h.prolongable() {
		m.world.Schedule(h, renewal.Plan{What: renewal.End, At: h.Deadline.Add(validity.Margin(h.Terms.TTL))})
	}
}

// prolongable reports whether Redis may have given h another TTL than the first.
func (h *Hold) prolongable() bool { return !h.Terms.Fixed || h.extended }

// settleOwed releases a hold that ended early, and is owed. One of its leases names it.
func (lk *Lock) settleOwed(m *Moment, h *Hold, l *Lease) {
	lk.missed.add(missedLock)
	r := lk.giveUp(m, h, nil)
	r.logged, r.lease = true, l
	lk.step(m)
}
