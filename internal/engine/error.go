package engine

import (
	"context"
	"errors"
	"strings"

	"github.com/holdfast-go/holdfast/internal/lock"
	"github.com/holdfast-go/holdfast/internal/wire"
)

// Error is an error about one lock: what errors.Is finds, which is mostly a fact, and what caused it.
type Error struct {
	Of     error
	name   string  // of the lock, as its caller has given it; empty: no particular one
	Causes []error // none nil
}

// NewError drops nil causes.
func NewError(of error, name string, causes ...error) error {
	return &Error{of, name, lock.Because(0, causes...).Causes}
}

func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString(e.Of.Error())
	if e.name != "" || e.Of == lock.InvalidName {
		b.WriteString(": ")
		b.WriteString(wire.Quote(e.name))
	}
	for _, c := range e.Causes {
		b.WriteString(": ")
		b.WriteString(c.Error())
	}
	return b.String()
}

// Unwrap returns what errors.Is and errors.As look at.
func (e *Error) Unwrap() []error { return append([]error{e.Of}, e.Causes...) }

// FactOf returns what an error says itself, without its causes: why a caller's context has ended
// can be the error of another lock.
func FactOf(err error) error {
	if e, ok := err.(*Error); ok {
		return e.Of
	}
	return err
}

// outcomeOf names the result of an acquire. A busy lock and a caller that gave up are
// not errors.
func outcomeOf(err error) string {
	switch {
	case err == nil:
		return "acquired"
	case !errors.Is(FactOf(err), lock.NotAcquired):
		return "error"
	case errors.Is(err, context.DeadlineExceeded):
		return "timeout"
	case errors.Is(err, context.Canceled):
		return "canceled"
	}
	return "not_acquired"
}

// errorTypes are the names of errors in spans and metrics.
var errorTypes = []struct {
	of   lock.Fact
	name string
}{
	{lock.LeaseLost, "lease_lost"}, {lock.MaxHoldOver, "max_hold"}, {lock.NotHeld, "not_held"},
	{lock.Closed, "closed"}, {lock.WouldDeadlock, "would_deadlock"}, {lock.WrongKind, "wrong_kind"},
	{lock.InvalidName, "invalid_name"}, {lock.InvalidOption, "invalid_option"}, {lock.Unavailable, "unavailable"},
}

// errorType is the low-cardinality name of an error.
func errorType(err error) string {
	err = FactOf(err)
	for _, t := range errorTypes {
		if errors.Is(err, t.of) {
			return t.name
		}
	}
	return "other"
}
