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
	e.engine.scheduler.Remove(&h.item)
}

// endHoldLocked ends h and all its leases, without telling Redis.
func (e *entry) endHoldLocked(m *moment, h *hold, end *Verdict) []Ended {
	if h.phase != held {
		return nil
	}
	h.endLimit()
	e.withoutLocked(m, h, end)
	var all []Ended
	for l := h.leases; l != nil; l = l.next {
		all = append(all, l.endLocked(end))
	}
	e.missed.add(missedLock)
	return all
}

// loseLocked ends a hold that cannot be trusted any more. The caller passes the result
// to announceLoss after unlocking; it is nil if the hold had ended before.
func (e *entry) loseLocked(m *moment, h *hold, reason lossReason) []Ended {
	if h.phase != held {
		return nil // a late answer about a hold that was given up
	}
	all := e.endHoldLocked(m, h, lostBy(reason))
	switch {
	case reason == lostDeadline:
		e.oweLocked(h)
	case h.stray(): // a late copy of its acquire could take the lock for no caller
		e.startReleaseLocked(m, h, false, nil)
	}
	return all
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
func (e *entry) displaceLocked(m *moment, h *hold) (lost []Ended) {
	for _, x := range e.conflictsLocked(h) {
		lost = append(lost, e.loseLocked(m, x, lostStolen)...)
		if !x.stray() { // else loseLocked has begun its release, even if only the downgrade was unanswered
			e.startReleaseLocked(m, x, true, nil)
		}
	}
	return lost
}

// announceLoss announces the holds that were lost, each once. No lock may be held: handlers of the logger and code
// that listens to the contexts run.
func (e *entry) announceLoss(all []Ended, reason lossReason) {
	var names []string // of a lease of each hold, whose leases follow each other
	for i, d := range all {
		if i == 0 || all[i-1].lease.hold != d.lease.hold {
			names = append(names, d.lease.name)
			e.countLoss(reason)
		}
	}
	announceAll(all)
	for _, name := range names {
		e.engine.Journal.Lost(name, string(reason))
	}
}

// countLoss counts a hold that was lost. No lock may be held.
func (e *entry) countLoss(reason lossReason) {
	e.engine.Telemetry.Lost(string(reason))
	e.engine.Stats.Lost.Add(1)
}

// reachLimit ends the leases of the owner whose limit l is with ErrMaxHold, if it still has the hold.
func (e *entry) reachLimit(l *limit) {
	m := e.moment()
	e.mu.Lock()
	h := l.hold
	if h.phase != held || h.limit != l {
		e.mu.Unlock()
		return
	}
	announce := e.endByLimitLocked(&m, h)
	e.mu.Unlock()
	announce()
}

// endByLimitLocked ends h, which stays in Redis until Unlock or its TTL. The caller calls the
// result after unlocking.
func (e *entry) endByLimitLocked(m *moment, h *hold) (announce func()) {
	all, name := e.endHoldLocked(m, h, because(MaxHoldOver)), e.name
	if len(all) > 0 {
		name = all[0].lease.name
	}
	e.oweLocked(h)
	e.stepLocked(m)
	return func() {
		e.engine.Stats.Lost.Add(1)
		announceAll(all)
		e.engine.Journal.MaxHold(name, h.cfg.MaxHold)
	}
}

// oversleptLocked ends h, whose end has passed without its timers having run: this process stood
// still. The caller calls the result after unlocking.
func (e *entry) oversleptLocked(m *moment, h *hold) (announce func()) {
	if l := h.limit; l != nil && l.at.Before(h.deadline) {
		return e.endByLimitLocked(m, h)
	}
	lost := e.loseLocked(m, h, lostDeadline)
	e.stepLocked(m)
	return func() { e.announceLoss(lost, lostDeadline) }
}

// closeHoldLocked releases h, whose leases end with ErrClosed. If the time of h is over, it ends as it does by the
// timer, which did not run. The caller calls the result after unlocking.
func (e *entry) closeHoldLocked(m *moment, h *hold) (announce func()) {
	leased, converting := h.leases != nil, e.reads.converts(h)
	if leased && !m.now().Before(h.leases.deadlineLocked()) {
		return e.oversleptLocked(m, h)
	}
	h.stays = leased
	all := e.endHoldLocked(m, h, because(LeaseClosed))
	r := e.startReleaseLocked(m, h, false, nil)
	r.held = leased && !converting // the downgrade became a release too, and one of the two finds nothing
	return func() { announceAll(all) }
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
		var all []Ended
		for _, h := range e.holdsLocked() {
			all = append(all, e.loseLocked(&m, h, lostDeleted)...)
		}
		e.stepLocked(&m)
		e.mu.Unlock()
		e.announceLoss(all, lostDeleted)
	}
}

// notFound is called when a renewal did not find h in Redis.
func (e *entry) notFound(h *hold, reason lossReason) {
	m := e.moment()
	e.mu.Lock()
	all := e.loseLocked(&m, h, reason)
	e.stepLocked(&m)
	e.mu.Unlock()
	e.announceLoss(all, reason)
}
