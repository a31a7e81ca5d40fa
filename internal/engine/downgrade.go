package engine

import (
	"context"
	"time"

	"github.com/holdfast-go/holdfast/internal/command"
	"github.com/holdfast-go/holdfast/internal/protocol"
	"github.com/holdfast-go/holdfast/internal/validity"
)

// An owner that holds the write side takes the read side by re-entry, without a word to Redis. When its last write
// lease ends and read leases remain, they go to a read hold of the same number, into which a request has Redis convert
// the write hold. That is repeated like a release until Redis has answered. Until then the process does not know which
// of the two holds Redis has. A lock that is given up meanwhile gives up both.

// downgrade converts a write hold.
type downgrade struct {
	repeated // hold is the writer's
	reader   *hold
	began    time.Time
	ttl      time.Duration // of reader
}

// downgradeLocked begins the conversion of h, the write hold.
func (e *entry) downgradeLocked(m *moment, h *hold, trace context.Context) *downgrade {
	now, reader := m.now(), h.becomeReader()
	e.hold = nil
	m.schedule(plan{hold: h, what: planDrop})
	m.schedule(plan{hold: reader, what: planEnd, at: h.deadline})
	ttl := h.cfg.TTL
	if left := h.deadline.Sub(now); h.cfg.Fixed || left > ttl-validity.Margin(ttl) {
		ttl = validity.TTL(left) // the rest of a fixed lease, or what Extend has added
	}
	d := &downgrade{reader: reader, began: now, ttl: ttl}
	d.isFor(m, h, d)
	d.script, d.until = protocol.RWDowngrade, h.deadline
	d.args = append(reader.withKeys(d.room[:], d.script, true), reader.id(), e.engine.Publish, h.offer(), validity.Milliseconds(ttl))
	e.addReaderLocked(reader)
	e.reads.converting = d
	m.order().close.more++
	d.sendLocked(m, &d.call, trace)
	if w := e.waiters.Front(); w != nil && !e.bidOf(w).standing() && reader.joins(w.Value.h, now) {
		e.shareLocked(m, reader, w, true) // it excludes other processes, or lets their readers in: either is fine
	}
	return d
}

// Replied is called by the executor with the end of a request.
func (d *downgrade) Replied(c *command.Call, reply command.Reply) {
	e := d.entry
	m := e.moment()
	e.mu.Lock()
	e.answeredLocked(reply)
	if !d.endsWith(&m, c, reply) {
		e.unlock(&m)
		return
	}
	if _, ok := reply.Value.(int64); ok && reply.Outcome == command.Answered {
		d.convertedLocked(&m, reply)
	} else {
		if d.troubledLocked(&m, reply) {
			d.giveUpWaitingLocked(&m, d.trouble) // Redis keeps the write side: until that ends, an answer says how the read side is
		}
		d.againLocked(&m)
	}
	d.sayGaveUpLocked(&m)
	e.stepLocked(&m)
	e.unlock(&m)
}

// convertedLocked ends a downgrade with Redis's answer.
func (d *downgrade) convertedLocked(m *moment, reply command.Reply) {
	h, e := d.reader, d.entry
	if reply.Value == int64(0) {
		if h.phase == held {
			since := reply.Sent // whichever copy did it, this one has set the TTL as well
			if h.cfg.Fixed {
				since = d.began
			}
			if deadline := h.scheduleFrom(m, since, d.ttl); deadline.After(h.deadline) {
				h.deadline = deadline
			}
		}
		d.settleLocked(m, nil)
		return
	}
	var reason lossReason
	switch {
	case !d.lapsed && !validity.Valid(m.now(), h.deadline): // and so had the TTL, perhaps
		reason = lostDeadline
	case reply.Value == int64(protocol.ReleaseStolen):
		reason = lostStolen
	default:
		reason = lostDeleted
	}
	d.settleLocked(m, d.endedLocked(lostBy(reason)))
	e.loseLocked(m, h, reason)
}

// becomeReader makes the read hold that is left of the write hold h when its writers have gone. Requests under way for h
// find that it is over.
func (h *hold) becomeReader() *hold {
	r := &hold{
		entry: h.entry, cfg: h.cfg, keys: h.keys, kind: ReadKind, number: h.number,
		phase: held, downgraded: true, extended: h.extended, stays: h.stays, turn: h.turn, token: h.token,
		copies:   copies{unclear: h.stray()},
		deadline: h.deadline, tenure: h.tenure, renewed: h.renewed, roundTrip: h.roundTrip,
		leases: h.leases, limit: h.limit,
	}
	r.item.Value = r
	if h.demand == demandKnown { // the answer to a question under way goes to h
		r.demand = demandKnown
	}
	for l := r.leases; l != nil; l = l.next {
		l.hold = r
	}
	if r.limit != nil {
		r.limit.hold = r
	}
	h.phase, h.leases, h.limit = over, nil, nil
	return r
}

// endedLocked is the verdict for the Unlock that waits for the downgrade when the reader has ended. If its time was
// over, the write side was valid when it was unlocked.
func (d *downgrade) endedLocked(end *Verdict) *Verdict {
	if !d.lapsed && (end.is(MaxHoldOver) || end.is(LeaseLost) && end.Reason == lostDeadline) {
		return because(Unavailable, Downgrading)
	}
	return end
}

// abandonLocked is for a reader that ends while its downgrade is unanswered: the write side, which Redis may still
// have, is given up as well. If the reader has ended early, that ends the downgrade. If it has been unlocked, end is
// nil, and the Unlock that began the downgrade waits for the release of the write side instead.
func (d *downgrade) abandonLocked(m *moment, end *Verdict) {
	writer, reader := d.hold, d.reader
	writer.unclear, reader.unclear = true, true // the release of each is to leave a tombstone for late copies
	writer.stays = reader.stays
	r := newReleaseLocked(m, writer, false)
	r.lease = d.lease
	if end == nil {
		r.unclear = true // a copy of the downgrade may have run
		r.patient, r.lapsed = d.patient, d.lapsed
		r.answers, d.answers = d.answers, answers{}
		if l := d.lease; l != nil && l.release == &d.repeated {
			l.release = &r.repeated
		}
	}
	r.startLocked(m, nil)
	d.settleLocked(m, d.endedLocked(end))
}
