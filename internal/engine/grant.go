package engine

import (
	"context"
	"time"

	"github.com/holdfast-go/holdfast/internal/validity"
)

// grantedLocked makes the claim a hold of the process, whose TTL of ttl began no
// earlier than at since.
func (e *entry) grantedLocked(m *moment, h *hold, since time.Time, ttl time.Duration, lastToken uint64, how grantMode) {
	e.known.untroubled()
	w := h.bid.waiter
	e.endBidLocked(m, h)
	now := m.now()
	if !validity.Valid(now, validity.Deadline(since, ttl)) {
		// The server may be about to expire it: this is no grant (S2 in docs/internals/VERIFICATION.md).
		e.troubledLocked(TooLate)
		e.refuseLocked(m, e.tries+1, Unavailable, TooLate)
		e.releaseLocked(m, h, nil)
		e.pauseLocked(m, since)
		return
	}
	e.displaceLocked(m, h)
	e.known = known{}
	h.phase = held
	h.tenure = m.age()
	e.returnedLocked(now)
	if h.cfg.Fencing {
		h.token = lastToken - uint64(h.tokens)
		m.sawToken(e, lastToken)
	}
	if h.kind == ReadKind {
		e.addReaderLocked(h)
	} else {
		e.hold = h
	}
	h.deadline = h.scheduleFrom(m, since, ttl)
	e.serveLocked(m, h, w, how)
}

// serveLocked gives a hold that has just been granted to the waiter whose claim it
// was, and a read hold to the readers behind as well.
func (e *entry) serveLocked(m *moment, h *hold, w *waiter, how grantMode) {
	e.assignLocked(m, h, w, how)
	if h.kind != ReadKind {
		e.refuseLocked(m, e.tries+1, NotAcquired, nil) // another owner has it now
		return
	}
	e.shareLocked(m, h, e.waiters.Front(), how != grantedAtOnce)
	e.missed.add(missedLock) // a writer behind is to stand in the queue, a reader may need a hold of its own
}

// shareLocked lets in the readers from w on, up to the next writer, that can use the
// read hold h. They have waited for another owner if waited.
func (e *entry) shareLocked(m *moment, h *hold, w *waiter, waited bool) {
	at := m.age()
	for next := w; w != nil && w.Value.h.Kind == ReadKind; w = next {
		next = w.Next()
		if h.shares(w.Value.h) {
			if waited {
				e.waitedLocked(w, at)
			}
			e.deliverLocked(m, w, outcome{lease: e.leaseLocked(h, w.Value.h, grantedByHandoff, at, w.Value.label)})
		}
	}
}

// assignLocked makes w's caller the owner of h.
func (e *entry) assignLocked(m *moment, h *hold, w *waiter, how grantMode) {
	if h.cfg.Fencing {
		h.token++
		h.tokens--
	}
	if d := h.cfg.MaxHold; d > 0 {
		h.limit = &limit{at: m.now().Add(d), hold: h}
		m.sync(h.limit)
	}
	at := m.age()
	if how != grantedAtOnce || w.Value.stood {
		e.waitedLocked(w, at)
	}
	e.deliverLocked(m, w, outcome{lease: e.leaseLocked(h, w.Value.h, how, at, w.Value.label)})
}

// reenterLocked adds a lease to the hold of outer for a caller whose context carries outer.
func (e *entry) reenterLocked(outer *Lease, by *Lock, now time.Time) (*Lease, *Verdict) {
	h := outer.hold
	switch {
	case h.kind == ReadKind && by.Kind == WriteKind:
		return nil, because(WouldDeadlock, Upgrade)
	case by.Terms.Fencing && !h.cfg.Fencing:
		return nil, because(Tokenless)
	}
	return e.leaseLocked(h, by, grantedReentry, now.Sub(e.engine.Epoch), outer.few().label), nil
}

// leaseLocked adds a lease to h, granted at that time after Engine.Epoch.
func (e *entry) leaseLocked(h *hold, by *Lock, how grantMode, at time.Duration, label *string) *Lease {
	l := &Lease{name: by.Name, kind: by.Kind, entry: e, hold: h, how: how, token: h.token, since: at, class: by.Class}
	if h.limit != nil || label != nil {
		l.rare = &rare{limit: h.limit, label: label}
	}
	h.add(l)
	by.Class.granted(by.Kind, how)
	return l
}

// passLocked is called when the last lease on h is gone. It passes h to the next caller
// here if that is allowed, else back to Redis. It returns the release, nil if there is
// none.
func (e *entry) passLocked(m *moment, h *hold, trace context.Context) *release {
	if h.phase != held {
		return nil
	}
	h.endLimit(m)
	now := m.now()
	if w := e.waiters.Front(); w != nil && h.kind != ReadKind && h.passes(w.Value.h, now) {
		e.askDemandLocked(m, h)
		e.assignLocked(m, h, w, grantedByHandoff)
		e.refuseLocked(m, e.tries+1, NotAcquired, nil)
		return nil
	}
	if h.stay(now) > 0 {
		e.missed.add(missedLock) // a waiter may know of another end
	}
	if w := e.waiters.Front(); w != nil && !e.bidOf(w).standing() {
		e.missed.add(missedLock) // this one is in no queue, so no release tells it
	}
	r := e.releaseLocked(m, h, trace)
	r.held = true
	e.stepLocked(m)
	return r
}

// releaseLocked gives h back to Redis.
func (e *entry) releaseLocked(m *moment, h *hold, trace context.Context) *release {
	converting := e.reads.converts(h)
	e.withoutLocked(m, h, nil)
	r := e.startReleaseLocked(m, h, false, trace)
	r.unclear = converting // the downgrade became a release too, and one of the two finds nothing
	return r
}
