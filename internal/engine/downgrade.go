package engine

import (
	"context"
	"time"

	"github.com/holdfast-go/holdfast/internal/command"
	"github.com/holdfast-go/holdfast/internal/protocol"
	"github.com/holdfast-go/holdfast/internal/validity"
)

// An owner that holds the write side takes the read side by re-entry, without a word to Redis. When its last write
// lease ends and read leases remain, the write hold is converted into a read hold, by a request that is repeated
// like a release until Redis has answered. Until then the process does not know which of the two Redis has. A lock
// that is given up meanwhile gives up both.

// downgrade is what a release is while it converts a write hold.
type downgrade struct {
	began time.Time
	ttl   time.Duration // of the read side
}

// downgradeLocked begins the conversion of h. Its leases stay, on a read hold from now on.
func (e *entry) downgradeLocked(h *hold, now time.Time, trace context.Context) *release {
	e.hold = nil
	h.kind, h.downgraded = ReadKind, true
	e.engine.scheduler.Suspend(&h.item)
	ttl := h.cfg.TTL
	if left := h.deadline.Sub(now); h.cfg.Fixed || left > ttl-validity.Margin(ttl) {
		ttl = validity.TTL(left) // the rest of a fixed lease, or what Extend has added
	}
	r := &release{
		entry:     e,
		hold:      h,
		script:    protocol.RWDowngrade,
		downgrade: &downgrade{now, ttl},
		lapsed:    !validity.Valid(now, h.deadline),
		patient:   now.Add(e.engine.patienceFor(h.cfg.TTL)),
		until:     h.deadline,
	}
	r.args = append(h.withKeys(r.room[:], protocol.RWDowngrade, true), h.id(), e.engine.Publish, h.offer(), validity.Milliseconds(ttl))
	if e.reads == nil {
		e.reads = new(readHolds)
	}
	e.reads.holds = append(e.reads.holds, h)
	e.reads.converting = r
	e.engine.begin()
	r.sendLocked(&r.call, trace)
	if w := e.waiters.Front(); w != nil && !e.bidOf(w).standing() && h.joins(w.Value.h, now) {
		e.shareLocked(h, w, true, now) // it excludes other processes, or lets their readers in: either is fine
	}
	return r
}

// convertedLocked ends a downgrade with Redis's answer.
func (r *release) convertedLocked(reply command.Reply) (lost []Ended, reason lossReason) {
	h, e := r.hold, r.entry
	if reply.Value == int64(0) {
		if h.phase == held {
			since := reply.Sent // whichever copy did it, this one has set the TTL as well
			if h.cfg.Fixed {
				since = r.downgrade.began
			}
			deadline := e.engine.scheduler.Add(&h.item, since, r.downgrade.ttl, h.cfg.TTL, !h.cfg.Fixed)
			if deadline.After(h.deadline) {
				h.deadline = deadline
			}
		}
		r.settleLocked(nil)
		return nil, ""
	}
	switch {
	case !r.lapsed && !validity.Valid(time.Now(), h.deadline): // and so had the TTL, perhaps
		reason = lostDeadline
	case reply.Value == int64(protocol.ReleaseStolen):
		reason = lostStolen
	default:
		reason = lostDeleted
	}
	r.settleLocked(r.endedLocked(lostBy(reason)))
	return e.loseLocked(h, reason), reason
}

// endedLocked is the verdict for the Unlock that waits for the downgrade when the hold has ended. If its time was
// over, the write side was valid when it was unlocked.
func (r *release) endedLocked(end *Verdict) *Verdict {
	if (end.Fact == MaxHoldOver || end.Reason == lostDeadline) && !r.lapsed {
		return because(Unavailable, Downgrading)
	}
	return end
}

// abandonLocked is for a hold that ends while its downgrade is unanswered: the write side,
// which it may still be, is given up as well. If the hold has ended, that ends the
// downgrade; if the read side has been unlocked, end is nil, and the downgrade
// becomes the release of the write side.
func (r *release) abandonLocked(end *Verdict) {
	h, e := r.hold, r.entry
	h.unclear = true // its own release is to leave a tombstone for late copies
	writer := &hold{
		entry: e, cfg: h.cfg, keys: h.keys, kind: WriteKind,
		number: h.number, deadline: h.deadline, phase: over, copies: copies{unclear: true}, stays: h.stays, tenure: h.tenure,
	}
	if end != nil {
		r.settleLocked(r.endedLocked(end))
		e.startReleaseLocked(writer, false, nil)
		return
	}
	r.downgrade, r.unclear = nil, true // a copy of the downgrade may have run
	r.beginLocked(writer, false, time.Now())
	r.sendLocked(new(command.Call), nil)
}
