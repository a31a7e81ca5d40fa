package engine

import (
	"context"
	"time"

	"github.com/holdfast-go/holdfast/internal/protocol"
	"github.com/holdfast-go/holdfast/internal/validity"
)

// Extend makes a lease of one lock last for at least d from now.
func (l *Lease) Extend(ctx context.Context, d time.Duration) error {
	e, h := l.hold.entry, l.hold
	ttl := validity.TTL(d)
	sent := time.Now()
	e.mu.Lock()
	over, read, unsettled := l.err != nil, h.kind == ReadKind, e.reads.converts(h)
	h.extended = h.extended || ttl > h.cfg.TTL && !unsettled && !over
	ttl = max(ttl, h.rest())
	e.mu.Unlock()
	if over { // by now the hold may be another caller's
		return l.stillHeld()
	}
	if unsettled { // Redis may still have the write side, and would deny the other
		return l.explain(because(Unavailable, Downgrading))
	}
	script, args := renewArgs(ttl, read, h)
	value, err := e.engine.Ask(ctx, l.name, Repeatable, script, args)
	if err != nil {
		return err
	}
	codes, ok := value.([]any)
	if !ok || len(codes) != 1 {
		return l.explain(because(Unavailable, Unexpected(value)))
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
		if !e.notFound(h, read, reason) {
			return l.Extend(ctx, d) // as a reader now
		}
	default:
		return l.explain(because(Unavailable, saidInstead(codes[0])))
	}
	return l.heldUntilNow()
}

// heldUntilNow is stillHeld, even for a lease whose end has passed and has not been handled yet.
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
