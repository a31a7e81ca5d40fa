package holdfast

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/internal/command"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/voting"
)

// What the members of a Redlock did, as its errors tell it.

// impossible reports whether a member will refuse the lock to any further request.
func impossible(err error) bool {
	return !errors.Is(err, ErrNotAcquired) && (!errors.Is(err, ErrUnavailable) || command.IsFinal(err)) && err != errVoteLost
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
	name := r.l.whole.lock.Name
	var causes []error
	if r.over {
		causes = engine.ContextCauses(ctx)
	}
	switch {
	case hopeless > spare:
		return newLockError(sentinelOf(worst), name, r.told(memberError.whole)), worst
	case failed+hopeless > spare:
		return newLockError(ErrUnavailable, name, append(causes, r.told(memberError.bare))...), nil
	case refused == 0 && !r.over:
		return newLockError(ErrUnavailable, name, errTooLate), nil
	}
	return newLockError(ErrNotAcquired, name, append(causes, r.told(memberError.bare))...), nil
}

// left makes the error of a caller whose ctx has ended, where the last round ended with err.
func (l *Redlock) left(ctx context.Context, err error) error {
	sentinel, causes := ErrNotAcquired, engine.ContextCauses(ctx)
	if errors.Is(err, ErrUnavailable) {
		sentinel = ErrUnavailable
	}
	if round := (*lockError)(nil); errors.As(err, &round) {
		causes = append(causes, round.causes...)
	}
	return newLockError(sentinel, l.whole.lock.Name, causes...)
}

// join makes the error of several parts, which have one name: it says which member did what.
func (l *Redlock) join(failures []failure) error {
	var all errorList
	for _, f := range failures {
		all = append(all, memberError{l.memberOf(f.part), len(l.members), f.err})
	}
	return newLockError(sentinelOf(failures[0].err), l.whole.lock.Name, all)
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
	var of *lockError
	var lost *LostError
	switch {
	case errors.As(err, &of) && len(of.causes) > 0:
		return errorList(of.causes)
	case of != nil:
		return errors.New(strings.TrimPrefix(of.sentinel.Error(), "holdfast: "))
	case errors.As(err, &lost):
		return fmt.Errorf("lease lost: %s", lost.Reason)
	}
	return err
}

// sentinelOf is what err is of.
func sentinelOf(err error) error {
	if of := (*lockError)(nil); errors.As(err, &of) {
		return of.sentinel
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
