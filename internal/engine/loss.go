package engine

import "slices"

// How a hold ends without a release: it is lost, or its time is over.

// withoutLocked takes h out of the entry and the schedule. end is why it ended, nil if it is released.
func (e *entry) withoutLocked(m *moment, h *hold, end *Verdict) {
	h.phase = over
	e.known.since = 0
	if e.hold == h {
		e.hold = nil
	} else if r := e.reads; r != nil {
		r.holds = slices.DeleteFunc(r.holds, func(x *hold) bool { return x == h })
		if r.converts(h) {
			r.converting.abandonLocked(m, end)
		}
	}
	m.schedule(plan{hold: h, what: planDrop})
}

// endHoldLocked ends h and all its leases, without telling Redis.
func (e *entry) endHoldLocked(m *moment, h *hold, end *Verdict) []Ended {
	if h.phase != held {
		return nil
	}
	h.endLimit(m)
	e.withoutLocked(m, h, end)
	var all []Ended
	for l := h.leases; l != nil; l = l.next {
		all = append(all, l.endLocked(end))
	}
	e.missed.add(missedLock)
	return all
}

// loseLocked ends a hold that cannot be trusted any more.
func (e *entry) loseLocked(m *moment, h *hold, reason lossReason) {
	if h.phase != held {
		return // a late answer about a hold that was given up
	}
	if all := e.endHoldLocked(m, h, lostBy(reason)); len(all) > 0 {
		m.then(holdLost{all[0].lease.name, reason, all})
	}
	switch {
	case reason == lostDeadline:
		e.oweLocked(m, h)
	case h.stray(): // a late copy of its acquire could take the lock for no caller
		e.startReleaseLocked(m, h, false, nil)
	}
}

// conflictsLocked returns the holds beside which Redis does not grant h, unless they were deleted there.
func (e *entry) conflictsLocked(h *hold) []*hold {
	var all []*hold
	if h.kind != ReadKind {
		all = append(all, e.reads.all()...)
	}
	if e.hold != nil {
		all = append(all, e.hold)
	}
	return all
}

// displaceLocked ends the holds beside which h has been granted. The order of the replies does not say which of
// them Redis has now. So these are released, each by its owner id, with the place that it may have got again. If
// it was h that was deleted, its renewal finds out.
func (e *entry) displaceLocked(m *moment, h *hold) {
	for _, x := range e.conflictsLocked(h) {
		e.loseLocked(m, x, lostStolen)
		if !x.stray() { // else loseLocked has begun its release, even if only the downgrade was unanswered
			e.startReleaseLocked(m, x, true, nil)
		}
	}
}

// reachLimit ends the leases of the owner whose limit l is with ErrMaxHold, if it still has the hold.
func (e *entry) reachLimit(l *limit) {
	m := e.moment()
	e.mu.Lock()
	defer e.unlock(&m)
	if h := l.hold; h.phase == held && h.limit == l {
		e.endByLimitLocked(&m, h)
	}
}

// endByLimitLocked ends h, which stays in Redis until Unlock or its TTL.
func (e *entry) endByLimitLocked(m *moment, h *hold) {
	all, name := e.endHoldLocked(m, h, because(MaxHoldOver)), e.name
	if len(all) > 0 {
		name = all[0].lease.name
	}
	m.then(holdOver{name, h.cfg.MaxHold, all})
	e.oweLocked(m, h)
	e.stepLocked(m)
}

// oversleptLocked ends h, whose end has passed without its timers having run: this process stood
// still.
func (e *entry) oversleptLocked(m *moment, h *hold) {
	if l := h.limit; l != nil && l.at.Before(h.deadline) {
		e.endByLimitLocked(m, h)
		return
	}
	e.loseLocked(m, h, lostDeadline)
	e.stepLocked(m)
}

// closeHoldLocked releases h, whose leases end with ErrClosed. If the time of h is over, it ends as it does by the
// timer, which did not run.
func (e *entry) closeHoldLocked(m *moment, h *hold) {
	leased, converting := h.leases != nil, e.reads.converts(h)
	if leased && !m.now().Before(h.leases.deadlineLocked()) {
		e.oversleptLocked(m, h)
		return
	}
	h.stays = leased
	m.then(holdClosed(e.endHoldLocked(m, h, because(LeaseClosed))))
	r := e.startReleaseLocked(m, h, false, nil)
	r.held = leased && !converting // the downgrade became a release too, and one of the two finds nothing
}

// Lose ends all holds of a key, of whatever kind, as notFound does.
func (eng *Engine) Lose(key string) {
	for family := range families {
		e := eng.existing(family, key)
		if e == nil {
			continue
		}
		m := e.moment()
		e.mu.Lock()
		for _, h := range e.holdsLocked() {
			e.loseLocked(&m, h, lostDeleted)
		}
		e.stepLocked(&m)
		e.unlock(&m)
	}
}

// notFound is called when a renewal did not find h in Redis.
func (e *entry) notFound(h *hold, reason lossReason) {
	m := e.moment()
	e.mu.Lock()
	e.loseLocked(&m, h, reason)
	e.stepLocked(&m)
	e.unlock(&m)
}
