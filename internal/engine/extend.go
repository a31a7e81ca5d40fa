package engine

import (
	"context"
	"time"

	"github.com/holdfast-go/holdfast/internal/protocol"
	"github.com/holdfast-go/holdfast/internal/validity"
)

// Extend makes a lease of one lock last for at least d from now.
func (l *Lease) Extend(ctx context.Context, d time.Duration) error {
	e := l.entry
	ttl := validity.TTL(d)
	sent := time.Now()
	m := e.moment()
	e.mu.Lock()
	h, over := l.hold, l.err != nil
	unsettled := e.reads.converts(h)
	h.extended = h.extended || ttl > h.cfg.TTL && !unsettled && !over
	ttl = max(ttl, h.rest(m.now()))
	e.unlock(&m)
	if over { // by now the hold may be another caller's
		return l.stillHeld()
	}
	if unsettled { // Redis may still have the write side, and would deny the other
		return l.explain(because(Unavailable, Downgrading))
	}
	script, args := renewArgs(ttl, h)
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
		e.prolonged(h, sent, ttl)
	case int64(protocol.RenewGone):
		e.notFound(h, lostDeleted)
	case int64(protocol.RenewStolen):
		e.notFound(h, lostStolen)
	default:
		return l.explain(because(Unavailable, saidInstead(codes[0])))
	}
	if !l.isOn(h) {
		return l.Extend(ctx, d) // as a reader: the answer is about the write side
	}
	return l.heldUntilNow()
}

// isOn reports whether h is what l is a lease on.
func (l *Lease) isOn(h *hold) bool {
	l.mu().Lock()
	defer l.mu().Unlock()
	return l.hold == h
}

// heldUntilNow is stillHeld, even for a lease whose end has passed and has not been handled yet.
func (l *Lease) heldUntilNow() error {
	e := l.entry
	m := e.moment()
	e.mu.Lock()
	if l.err == nil && !m.now().Before(l.deadlineLocked()) {
		e.oversleptLocked(&m, l.hold)
	}
	e.unlock(&m)
	return l.stillHeld()
}
