package holdfast

import (
	"context"
	"time"

	"github.com/holdfast-go/holdfast/internal/protocol"
	"github.com/holdfast-go/holdfast/internal/validity"
)

// Extend makes the lease last for at least d from now. It is for fixed leases. A lease that is
// renewed is prolonged too, in case renewals fail, and is renewed as often as before. A lease is
// never shortened.
//
// Extend returns
//
//   - [ErrLeaseLost], [ErrMaxHold] or [ErrClosed] if the lease has ended.
//   - [ErrNotHeld] after Unlock.
//   - [ErrInvalidOption] for a bad d, or one beyond [WithMaxHold].
//   - [ErrUnavailable] if Redis refused, or did not answer within a second (twelve round trips
//     where Redis is far away) or before ctx was done. It is also returned while Redis has not
//     confirmed a downgrade of this owner.
//
// After ErrUnavailable the lease may last as long as before or as long as requested: rely on
// [Lease.Deadline].
//
// Several locks are extended at the same time. Extend needs all locks of a Multi. It returns with a
// majority of a Redlock's members, while the others go on. After an error some of the locks may
// last longer.
func (l *Lease) Extend(ctx context.Context, d time.Duration) error {
	if err := l.check("Extend"); err != nil {
		return err
	}
	if ctx == nil {
		return missing("Extend", "context")
	}
	if l.group != nil {
		return l.group.extend(ctx, l, d)
	}
	e, h := l.hold.entry, l.hold
	var bad error
	if checkLease(&bad, "Extend", d); bad != nil {
		return bad
	}
	switch ended := l.stillHeld(); {
	case ended != nil:
		return ended
	case l.limit != nil && time.Until(l.limit.at) < d:
		return &OptionError{"Extend", d, "must not go beyond the end that WithMaxHold sets"}
	}
	ttl := validity.TTL(d)
	sent := time.Now()
	e.mu.Lock()
	over, read, unsettled := l.err != nil, h.kind == readKind, e.reads.converts(h)
	h.extended = h.extended || ttl > h.cfg.ttl && !unsettled && !over
	ttl = max(ttl, h.rest())
	e.mu.Unlock()
	if over { // by now the hold may be another caller's
		return l.stillHeld()
	}
	if unsettled { // Redis may still have the write side, and would deny the other
		return l.explain(because(unavailable, downgrading))
	}
	script, args := renewArgs(ttl, read, h)
	value, err := e.m.ask(ctx, l.name, repeatable, script, args)
	if err != nil {
		return err
	}
	codes, ok := value.([]any)
	if !ok || len(codes) != 1 {
		return l.explain(because(unavailable, unexpected(value)))
	}
	switch codes[0] {
	case int64(protocol.RenewDone):
		if !e.prolonged(h, read, sent, ttl) {
			return l.Extend(ctx, d) // as a reader now
		}
	case int64(protocol.RenewGone), int64(protocol.RenewStolen):
		reason := lostDeleted
		if codes[0] == int64(protocol.RenewStolen) {
			reason = lostStolen
		}
		if !e.missed(h, read, reason) {
			return l.Extend(ctx, d) // as a reader now
		}
	default:
		return l.explain(because(unavailable, saidInstead(codes[0])))
	}
	return l.heldUntilNow()
}

// heldUntilNow is stillHeld, also of a lease whose end has passed and has not been handled yet.
func (l *Lease) heldUntilNow() error {
	e, announce := l.hold.entry, func() {}
	e.mu.Lock()
	if l.err == nil && !time.Now().Before(l.deadlineLocked()) {
		announce = e.oversleptLocked(l.hold)
	}
	e.mu.Unlock()
	announce()
	return l.stillHeld()
}

// stillHeld reports why the lease is not, nil if it is.
func (l *Lease) stillHeld() error {
	switch err := l.Err(); {
	case err == ErrReleased:
		return newLockError(ErrNotHeld, l.name)
	default:
		return err
	}
}
