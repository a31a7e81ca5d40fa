package holdfast

import (
	"context"
	"time"

	"github.com/holdfast-go/holdfast/internal/command"
	"github.com/holdfast-go/holdfast/internal/validity"
)

// An owner that holds the write side takes the read side by re-entry, without a word
// to Redis. When its last write lease ends and read leases remain, the write hold is
// converted into a read hold, by a request that is repeated like a release until
// Redis has answered. Until then nobody can know which of the two Redis has; giving the
// lock up then gives up both.

// downgradeLocked begins the conversion of h. Its leases stay, on a read hold from now on.
func (e *entry) downgradeLocked(h *hold, trace context.Context) *release {
	e.hold = nil
	h.kind = readKind
	h.unclear = true // giving it up must leave a tombstone for late copies
	e.m.scheduler.Suspend(&h.item)
	now, ttl := time.Now(), h.cfg.ttl
	if left := h.deadline.Sub(now); left > ttl-validity.Margin(ttl) {
		ttl = left + validity.Margin(2*left) // what Extend has added
	}
	k := h.keys
	args := []any{k.Lock, k.Channel, k.Queue, k.Tombstones}
	if h.cfg.fencing {
		args = append(args, k.Token)
	}
	keys := len(args)
	args = append(args, h.id(), e.m.publish, h.offer(nil), validity.Milliseconds(ttl))
	r := &release{
		hold:     h,
		script:   rwDowngrade,
		args:     rwDowngrade.Args(keys, args...),
		converts: true,
		ttl:      ttl,
		patient:  now.Add(validity.Patience(h.cfg.ttl)),
		until:    h.deadline,
	}
	if e.reads == nil {
		e.reads = new(readHolds)
	}
	e.reads.holds = append(e.reads.holds, h)
	e.reads.converting = r
	e.m.begin()
	r.sendLocked(&r.call, trace)
	if w := e.waiters.Front(); w != nil && !w.Value.queued && h.joins(w.Value.h, now) {
		e.shareLocked(h, w) // it excludes other processes, or lets their readers in: either is fine
	}
	return r
}

// convertedLocked ends a downgrade with Redis's answer.
func (r *release) convertedLocked(reply command.Reply) (lost []ended, reason LostReason) {
	h := r.hold
	e := h.entry
	if reply.Value == int64(0) {
		h.unclear = h.unanswered > 0
		if h.phase == held {
			e.m.scheduler.Remove(&h.item)
			deadline := e.m.scheduler.Add(&h.item, reply.Sent, r.ttl, h.cfg.ttl, !h.cfg.fixed)
			if deadline.After(h.deadline) {
				h.deadline = deadline
			}
		}
		r.settleLocked(nil)
		return nil, ""
	}
	reason = LostDeleted
	if reply.Value == int64(releaseStolen) {
		reason = LostStolen
	}
	r.settleLocked(&LostError{e.name(), reason})
	return e.loseLocked(h, reason), reason
}

// abandonLocked is for a hold that ends while its downgrade is unanswered: the write
// side, which it may still be, is given up as well. Who waits for the downgrade is told
// err; nil: the read side has been unlocked meanwhile, and nobody knows how it was.
func (r *release) abandonLocked(err error) {
	h := r.hold
	if err == nil {
		err = newLockError(ErrUnavailable, h.entry.name(), errSilent)
	}
	r.settleLocked(err)
	writer := &hold{
		entry: h.entry, cfg: h.cfg, keys: h.keys, kind: writeKind,
		number: h.number, phase: over, unclear: true,
	}
	h.entry.startReleaseLocked(writer, false, nil)
}
