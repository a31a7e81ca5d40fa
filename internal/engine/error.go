package engine

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/internal/command"
	"github.com/holdfast-go/holdfast/internal/lock"
	"github.com/holdfast-go/holdfast/internal/voting"
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

// What the members of a Redlock did, as its errors tell it.

// impossible reports whether a member will refuse the lock to any further request.
func impossible(err error) bool {
	return !errors.Is(err, lock.NotAcquired) && (!errors.Is(err, lock.Unavailable) || command.IsFinal(err)) && err != errVoteLost
}

// notGranted makes the error of a round without a majority. It is of one sentinel, and says what each member did. final is why asking
// again would bring the same answer, the error of the first member that says so; nil: it may bring another one.
func (r *round) notGranted(ctx context.Context) (err, final error) {
	spare := len(r.members) - r.l.quorum() // so many may fail
	hopeless, failed, refused := 0, 0, 0
	var worst error
	for i, m := range r.members {
		switch {
		case m.Answer == voting.Refused:
			refused++
		case m.Answer == voting.Failed && impossible(r.errs[i]):
			if hopeless++; worst == nil {
				worst = r.errs[i]
			}
		case m.Answer == voting.Failed, r.over && r.errs[i] != nil:
			failed++
		}
	}
	name := r.l.whole.Name
	var causes []error
	if r.over {
		causes = contextCauses(ctx)
	}
	switch {
	case hopeless > spare:
		return NewError(FactOf(worst), name, r.told(memberError.whole)), worst
	case failed+hopeless > spare:
		return NewError(lock.Unavailable, name, append(causes, r.told(memberError.bare))...), nil
	case refused == 0 && !r.over:
		return NewError(lock.Unavailable, name, lock.TooLate), nil
	}
	return NewError(lock.NotAcquired, name, append(causes, r.told(memberError.bare))...), nil
}

// left makes the error of a caller whose ctx has ended, where the last round ended with err.
func (l *Majority) left(ctx context.Context, err error) error {
	sentinel, causes := lock.NotAcquired, contextCauses(ctx)
	if errors.Is(err, lock.Unavailable) {
		sentinel = lock.Unavailable
	}
	if round := (*Error)(nil); errors.As(err, &round) {
		causes = append(causes, round.Causes...)
	}
	return NewError(sentinel, l.whole.Name, causes...)
}

// join makes the error of several parts, which have one name: it says which member did what.
func (l *Majority) join(failures []failure) error {
	var all errorList
	for _, f := range failures {
		all = append(all, memberError{l.memberOf(f.part), len(l.members), f.err})
	}
	return NewError(FactOf(failures[0].err), l.whole.Name, all)
}

// told says what each member did that has not granted its vote.
func (r *round) told(as func(memberError) error) error {
	var all errorList
	for i, m := range r.members {
		e := memberError{i, len(r.members), r.errs[i]}
		switch {
		case m.Answer == voting.Granted:
			continue
		case m.Answer == voting.Refused:
			e.err = errRefused
		case e.err == nil, errors.Is(e.err, command.ErrSilent):
			e.err = fmt.Errorf("%w in %v", command.ErrSilent, max(m.Lag, time.Since(r.begun)).Round(time.Millisecond))
		}
		all = append(all, as(e))
	}
	return all
}

var errRefused = errors.New("held by another owner")

// memberError is what one member of a Redlock did.
type memberError struct {
	member, of int
	err        error
}

func (e memberError) Error() string {
	return fmt.Sprintf("member %d of %d: %v", e.member+1, e.of, bareError(e.err))
}

func (e memberError) Unwrap() error { return e.err }

// whole is e with the sentinel of its error, if asking that member again would bring the same answer.
func (e memberError) whole() error {
	if impossible(e.err) {
		return e
	}
	return e.bare()
}

// bare is e without the sentinel of its error: beside another sentinel it would be a second fact.
func (e memberError) bare() error {
	e.err = bareError(e.err)
	return e
}

// bareError is what err says of one lock, without the lock and without the sentinel.
func bareError(err error) error {
	var of *Error
	var lost lock.Reason
	switch {
	case errors.As(err, &of) && len(of.Causes) > 0:
		return errorList(of.Causes)
	case of != nil:
		return errors.New(strings.TrimPrefix(of.Of.Error(), "holdfast: "))
	case errors.As(err, &lost):
		return errors.New(lost.Error())
	}
	return err
}

// errorList is several errors in one line.
type errorList []error

func (l errorList) Error() string {
	texts := make([]string, len(l))
	for i, err := range l {
		texts[i] = err.Error()
	}
	return strings.Join(texts, "; ")
}

func (l errorList) Unwrap() []error { return l }
