package lock

import (
	"time"

	"github.com/holdfast-go/holdfast/internal/renewal"
	"github.com/holdfast-go/holdfast/internal/validity"
)

// An owner that holds the write side takes the read side by re-entry, without a word to Redis. When its last write
// lease ends and read leases remain, they go to a read hold of the same number, into which a request has Redis convert
// the write hold. That is repeated like a release until Redis has answered. Until then the process does not know which
// of the two holds Redis has. A lock that is given up meanwhile gives up both.

// Downgrade converts a write hold.
type Downgrade struct {
	Repeated // Hold is the writer's
	Reader   *Hold
	TTL      time.Duration // of Reader
}

// downgrade begins the conversion of h, the write hold.
func (lk *Lock) downgrade(m *Moment, h *Hold, trace any) *Downgrade {
	now, reader := m.Now(), h.becomeReader()
	lk.hold = nil
	m.world.Schedule(h, renewal.Plan{What: renewal.Drop})
	m.world.Schedule(reader, renewal.Plan{What: renewal.End, At: h.Deadline})
	ttl := h.Terms.TTL
	if left := h.Deadline.Sub(now); h.Terms.Fixed || left > ttl-validity.Margin(ttl) {
		ttl = validity.TTL(left) // the rest of a fixed lease, or what Extend has added
	}
	d := &Downgrade{Reader: reader, TTL: ttl}
	d.isFor(m, h, d)
	d.until = h.Deadline
	lk.addShared(reader)
	lk.heed(m, reader) // in the place of h
	lk.shared.converting = d
	m.effects().Report.More++
	d.send(m, trace)
	if w := lk.waiters.head; w != nil && !lk.bidOf(w).standing() && reader.joins(m, &w.By) {
		lk.share(m, reader, w, true) // it excludes other processes, or lets their readers in: either is fine
	}
	return d
}

func (d *Downgrade) Replied(m *Moment, c *Copy, reply *Reply) {
	lk := d.lock
	lk.answered(m, reply)
	if !d.endsWith(m, c, reply) {
		return
	}
	if reply.Outcome == Answered {
		d.converted(m, reply)
	} else {
		if d.troubled(m, reply) {
			d.giveUpWaiting(m, d.trouble) // Redis keeps the write side: until that ends, an answer says how the read side is
		}
		d.again(m)
	}
	lk.step(m)
}

// converted ends a downgrade with Redis's answer.
func (d *Downgrade) converted(m *Moment, reply *Reply) {
	h, lk := d.Reader, d.lock
	if reply.Says == Done {
		if h.phase.owns() {
			since := reply.Sent // whichever copy did it, this one has set the TTL as well
			if h.Terms.Fixed {
				since = d.began
			}
			if deadline := h.scheduleFrom(m, since, d.TTL); deadline.After(h.Deadline) {
				h.Deadline = deadline
			}
		}
		d.settle(m, nil)
		return
	}
	var reason Reason
	switch {
	case !d.lapsed && !validity.Valid(m.Now(), h.Deadline): // and so had the TTL, perhaps
		reason = LostDeadline
	case reply.Says == Stolen:
		reason = LostStolen
	default:
		reason = LostDeleted
	}
	d.settle(m, d.ended(lostBy(reason)))
	lk.lose(m, h, reason)
}

// becomeReader makes the read hold that is left of the write hold h when its writers have gone. Requests under way for h
// find that it is over.
func (h *Hold) becomeReader() *Hold {
	r := &Hold{
		Lock: h.Lock, Terms: h.Terms, Kind: ReadKind, Number: h.Number,
		phase: held, origin: byDowngrade, extended: h.extended, unlocked: h.unlocked, watch: h.watch, Turn: h.Turn, token: h.token,
		copies:   copies{unclear: h.stray()},
		Deadline: h.Deadline, tenure: h.tenure, renewed: h.renewed, roundTrip: h.roundTrip,
		leases: h.leases, Limit: h.Limit,
	}
	r.Item.Value = r
	if h.demand == demanded { // the answer to a question under way goes to h
		r.demand = demanded
	}
	for l := r.leases; l != nil; l = l.next {
		l.hold = r
	}
	if r.Limit != nil {
		r.Limit.hold = r
	}
	h.phase, h.leases, h.Limit = over, nil, nil
	return r
}

// ended is the verdict for the Unlock that waits for the downgrade when the reader has ended. If its time was
// over, the write side was valid when it was unlocked.
func (d *Downgrade) ended(end *Verdict) *Verdict {
	if !d.lapsed && (end.Is(MaxHoldOver) || end.Is(LeaseLost) && end.Reason == LostDeadline) {
		return Because(Unavailable, Downgrading)
	}
	return end
}

// abandon is for a reader that ends while its downgrade is unanswered: the write side, which Redis may still
// have, is given up as well. If the reader has ended early, that ends the downgrade. If it has been unlocked, end is
// nil, and the Unlock that began the downgrade waits for the release of the write side instead.
func (d *Downgrade) abandon(m *Moment, end *Verdict) {
	writer, reader := d.Hold, d.Reader
	writer.unclear, reader.unclear = true, true // the release of each is to leave a tombstone for late copies
	writer.unlocked = reader.unlocked
	r := newRelease(m, writer, NothingLeft)
	r.lease = d.lease
	if end == nil {
		r.unclear = true // a copy of the downgrade may have run
		r.patient, r.lapsed = d.patient, d.lapsed
		r.answers, d.answers = d.answers, answers{}
		if l := d.lease; l != nil && l.release == &d.Repeated {
			l.release = &r.Repeated
		}
	}
	r.start(m, nil)
	d.logged = true
	d.settle(m, d.ended(end))
}
