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

// errVoteLost is why a vote does not count that a member has given.
var errVoteLost = errors.New("its vote was lost before there was a majority")

// answerOf returns what a member has said with an error.
func answerOf(err error) voting.Answer {
	if errors.Is(err, ErrNotAcquired) {
		return voting.Refused
	}
	return voting.Failed
}

// impossible reports whether a member will not grant the lock by being asked again.
func impossible(err error) bool {
	return !errors.Is(err, ErrNotAcquired) && (!errors.Is(err, ErrUnavailable) || command.IsFinal(err)) && err != errVoteLost
}

// notGranted is the error of a round. It is of one sentinel, and says what each member did.
func (r *round) notGranted(ctx context.Context) error {
	over := ctx.Err() != nil
	r.learn(over)
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
		case m.Answer == voting.Failed, over && r.errs[i] != nil:
			failed++
		}
	}
	name := r.l.whole.lock.Name
	var causes []error
	if over {
		causes = engine.ContextCauses(ctx)
	}
	switch {
	case hopeless > spare:
		r.final = worst
		return newLockError(sentinelOf(worst), name, r.told(memberError.whole))
	case failed+hopeless > spare:
		return newLockError(ErrUnavailable, name, append(causes, r.told(memberError.bare))...)
	case refused == 0 && !over:
		return newLockError(ErrUnavailable, name, errTooLate)
	}
	return newLockError(ErrNotAcquired, name, append(causes, r.told(memberError.bare))...)
}

// learn finds out why members have not answered, of a round that is over because ctx is, or that the others
// have decided. What it finds is no answer to this round: asking again may bring another one.
func (r *round) learn(over bool) {
	for i, h := range r.l.members {
		m := &r.members[i]
		if m.Answer != voting.Open {
			continue
		}
		inTime := m.Lag <= r.limit
		m.Lag = max(h.m.engine.Executor.Lag(h.lock.Mapped), time.Since(r.begun))
		switch r.errs[i] = h.m.engine.Executor.Failure(); {
		case r.errs[i] != nil:
		case m.Lag >= engine.Silence:
			r.errs[i] = command.ErrSilent
		case !over && inTime:
			r.errs[i] = errNotAwaited
		}
	}
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

var (
	errRefused    = errors.New("held by another owner")
	errNotAwaited = errors.New("not waited for") // the others had decided the round
)

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

// partError is how a call for one part of a lease of several locks ended.
type partError struct {
	part *Lease
	err  error
}

// joined is the error of several parts; nil if there is none. Those of a Redlock have one name: it says
// which member did what.
func (g *group) joined(errs []partError) error {
	var all errorList
	for _, e := range errs {
		if g.members != nil {
			e.err = memberError{memberOf(g.members, e.part), len(g.members), e.err}
		}
		all = append(all, e.err)
	}
	switch {
	case len(all) == 0:
		return nil
	case g.members == nil:
		return errors.Join(all...)
	}
	return newLockError(sentinelOf(errs[0].err), g.as.lock.Name, all)
}
