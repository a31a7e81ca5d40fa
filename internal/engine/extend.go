package engine

import (
	"context"
	"time"

	"github.com/holdfast-go/holdfast/internal/lock"
	"github.com/holdfast-go/holdfast/internal/protocol"
	"github.com/holdfast-go/holdfast/internal/validity"
)

// Extend makes a lease of one lock last for at least d from now.
func (l *Lease) Extend(ctx context.Context, d time.Duration) error {
	e := l.entry()
	sent := time.Now()
	m := e.moment()
	e.mu.Lock()
	h, ttl, over, unsettled := e.lock.Extend(&m, l.in(), validity.TTL(d))
	e.unlock(&m)
	if over { // by now the hold may be another caller's
		return l.stillHeld()
	}
	if unsettled { // Redis may still have the write side, and would deny the other
		return l.explain(lock.Because(Unavailable, Downgrading))
	}
	script, args := e.engine.Process.Renew(ttl, h)
	value, err := e.engine.Ask(ctx, l.Name(), Repeatable, script, args)
	if err != nil {
		return err
	}
	codes, ok := value.([]any)
	if !ok || len(codes) != 1 {
		return l.explain(lock.Because(Unavailable, protocol.Unexpected(value)))
	}
	switch codes[0] {
	case int64(protocol.RenewDone):
		e.prolonged(h, sent, ttl)
	case int64(protocol.RenewGone):
		e.notFound(h, lock.LostDeleted)
	case int64(protocol.RenewStolen):
		e.notFound(h, lock.LostStolen)
	default:
		return l.explain(lock.Because(Unavailable, saidInstead(codes[0])))
	}
	if !l.isOn(h) {
		return l.Extend(ctx, d) // as a reader: the answer is about the write side
	}
	return l.heldUntilNow()
}

// isOn reports whether h is what l is a lease on.
func (l *Lease) isOn(h *lock.Hold) bool {
	l.mu().Lock()
	defer l.mu().Unlock()
	return l.in().Hold() == h
}

// heldUntilNow is stillHeld, even for a lease whose end has passed and has not been handled yet.
func (l *Lease) heldUntilNow() error {
	e := l.entry()
	m := e.moment()
	e.mu.Lock()
	e.lock.Overslept(&m, l.in())
	e.unlock(&m)
	return l.stillHeld()
}
