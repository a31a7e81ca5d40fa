package holdfast

import (
	"context"
	"errors"

	"github.com/holdfast-go/holdfast/internal/telemetry"
)

// What spans and metrics say about the results of calls.

// part says that an operation is on one of several locks: it has a span, and is not measured. They are
// measured as a whole, or no number of any type of lock would be that of the callers.
const part = true

// observe begins a Lock or TryLock of h.
func (h *handle) observe(ctx context.Context, isPart bool) (context.Context, *telemetry.Operation) {
	return h.m.engine.Telemetry.Acquire(ctx, h.lock.Name, h.lock.Kind.String(), h.lock.Class.Label(), h.lock.Terms.TTL, !isPart)
}

// observe begins an Unlock of l.
func (l *Lease) observe(ctx context.Context, isPart bool) (context.Context, *telemetry.Operation) {
	return l.inner().Engine().Telemetry.Release(ctx, l.Name(), l.inner().Kind().String(), l.inner().Class(), !isPart)
}

// observed ends op, a Lock or TryLock, with what it returns.
func observed(op *telemetry.Operation, l *Lease, err error) {
	if op == nil {
		return
	}
	if l != nil {
		op.Granted(l.inner().Mode(), l.Token())
	}
	outcome, sort := outcomeOf(err), ""
	if outcome == "error" {
		sort = errorType(err)
	}
	op.End(outcome, sort, err)
}

// unlocked ends op, an Unlock, with what it returns.
func unlocked(op *telemetry.Operation, err error) {
	switch {
	case op == nil:
	case err == nil:
		op.End("released", "", nil)
	default:
		op.End("error", errorType(err), err)
	}
}

// outcomeOf names the result of an acquire. A busy lock and a caller that gave up are
// not errors.
func outcomeOf(err error) string {
	switch {
	case err == nil:
		return "acquired"
	case !errors.Is(factOf(err), ErrNotAcquired):
		return "error"
	case errors.Is(err, context.DeadlineExceeded):
		return "timeout"
	case errors.Is(err, context.Canceled):
		return "canceled"
	}
	return "not_acquired"
}

// factOf returns what an error says itself, without its causes: why a caller's context has ended
// can be the error of another lock.
func factOf(err error) error {
	if e, ok := err.(*lockError); ok {
		return e.sentinel
	}
	return err
}

// errorType is the low-cardinality name of an error.
func errorType(err error) string {
	err = factOf(err)
	for _, known := range []struct {
		err  error
		name string
	}{
		{ErrLeaseLost, "lease_lost"}, {ErrMaxHold, "max_hold"}, {ErrNotHeld, "not_held"},
		{ErrClosed, "closed"}, {ErrWouldDeadlock, "would_deadlock"}, {ErrWrongKind, "wrong_kind"},
		{ErrInvalidName, "invalid_name"}, {ErrInvalidOption, "invalid_option"}, {ErrUnavailable, "unavailable"},
	} {
		if errors.Is(err, known.err) {
			return known.name
		}
	}
	return "other"
}
