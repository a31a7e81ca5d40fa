package holdfast

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/protocol"
	"github.com/holdfast-go/holdfast/internal/wire"
)

// Term is the time in which this process leads an election, from [Election.Campaign] to Resign or the
// loss of its lease. Any goroutine may use it.
type Term struct {
	election *Election
	lease    *Lease

	mu    sync.Mutex  // guards the following
	news  uint64      // numbers what was said
	value string      // what was said last
	again *time.Timer // says it again; nil: Redis has not confirmed the term yet
	over  bool        // nothing more is said, but that the term is over
}

func newTerm(e *Election, l *Lease) *Term { return &Term{election: e, lease: l} }

// Lease returns the lease of the lock: ask it with [Lease.Valid] before each effect. To end the term,
// call [Term.Resign] instead of Unlock: observers learn of an Unlock alone only from the next leader,
// or when they ask again.
func (t *Term) Lease() *Lease {
	if t == nil {
		return nil
	}
	return t.lease
}

// Number returns the number of the term, which is the lease's fencing token. Of two terms the later
// one has the larger number. Numbers are not consecutive.
func (t *Term) Number() uint64 { return t.Lease().Token() }

// Proclaim publishes a new value, of at most 4 KiB, and returns when Redis has it. Of two calls at the
// same time, the value of the one that began later stays.
//
// Proclaim blocks as [Manager.Inspect] does. It returns
//
//   - [ErrLeaseLost], [ErrMaxHold] or [ErrClosed] if the term is over.
//   - [ErrNotHeld] after Resign.
//   - [ErrInvalidOption] for a value that is too long.
//   - [ErrWrongKind] if the key of the record holds something else.
//   - [ErrUnavailable] if Redis has not confirmed it: the value may be published.
func (t *Term) Proclaim(ctx context.Context, value string) error {
	if err := t.check(ctx, "Proclaim"); err != nil {
		return err
	}
	if err := checkProclaimed("Proclaim", value); err != nil {
		return err
	}
	if err := (*engine.Lease)(t.lease).StillHeld(); err != nil {
		return err
	}
	heard, err := t.say(ctx, &value)
	if err == nil && !heard {
		t.election.seat.m.engine.CheckHolds(t.election.seat.lock.Mapped)
		err = &LostError{t.lease.Name(), LostDeleted}
	}
	return err
}

// Resign ends the term, tells observers of the vacancy, and unlocks: the next candidate leads. Its
// errors are those of [Lease.Unlock], which has also what happens after an error. It blocks for up to a
// second longer. ctx carries the trace only.
func (t *Term) Resign(ctx context.Context) error {
	if ctx == nil {
		ctx = context.Background() // the lock must not stay held for that
	}
	if err := t.check(ctx, "Resign"); err != nil {
		return err
	}
	t.end()
	t.mu.Lock()
	said, args := t.news > 0, t.newsLocked("", 0)
	t.mu.Unlock()
	if said && t.lease.Err() == nil {
		// Without an answer, observers find the seat free when they ask. Unlock is called while the lease is valid: a lease that ends
		// after Resign was called is not lost.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Until(t.lease.Deadline())/2)
		_, _ = t.send(ctx, args)
		cancel()
	}
	return t.lease.Unlock(ctx)
}

// say tells Redis what the leader says; nil: the same again. It reports false, without error, if the lock is not its own any more.
func (t *Term) say(ctx context.Context, value *string) (heard bool, err error) {
	t.mu.Lock()
	if t.over {
		t.mu.Unlock()
		return false, engine.NewError(ErrNotHeld, t.lease.Name())
	}
	if value != nil {
		t.value = *value
	}
	args := t.newsLocked(t.value, 1)
	t.mu.Unlock()
	return t.send(ctx, args)
}

// newsLocked returns the arguments of the next request.
func (t *Term) newsLocked(value string, leads int) []any {
	t.news++
	keys := wire.ElectionKeys(t.election.seat.lock.Mapped)[:2]
	return append(keys, (*engine.Lease)(t.lease).Owner(), t.Number(), t.news, value, leads, t.election.seat.m.engine.Process.Publish)
}

func (t *Term) send(ctx context.Context, args []any) (heard bool, err error) {
	name := t.lease.Name()
	reply, err := t.election.seat.m.engine.Ask(ctx, name, engine.Repeatable, protocol.Proclaim, protocol.Proclaim.Args(2, args...))
	if err != nil {
		return false, err
	}
	heard, wrong, ok := protocol.ParseProclaimed(reply)
	switch {
	case !ok:
		return false, engine.NewError(ErrUnavailable, name, protocol.Unexpected(reply))
	case wrong != nil:
		return false, engine.NewError(ErrWrongKind, name, wrong)
	}
	return heard, nil
}

// lead makes t the term of this process, until its lease ends.
func (t *Term) lead() {
	m, key := t.election.seat.m, t.election.seat.lock.Mapped
	m.terms.Store(key, t)
	t.mu.Lock()
	t.again = time.AfterFunc(protocol.ProclaimAgain, t.sayAgain)
	t.mu.Unlock()
	context.AfterFunc(t.lease.Context(context.Background()), func() {
		t.end()
		m.terms.CompareAndDelete(key, t)
	})
}

// sayAgain is called by the timer: Redis keeps a record for a day.
func (t *Term) sayAgain() {
	_, _ = t.say(context.Background(), nil) // if it fails, the next one is in an hour
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.over {
		t.again.Reset(protocol.ProclaimAgain)
	}
}

// end stops what runs for the term.
func (t *Term) end() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.over = true
	if t.again != nil {
		t.again.Stop()
	}
}

// check refuses a call of a term's method.
func (t *Term) check(ctx context.Context, call string) error {
	switch {
	case t == nil:
		return missing(call, "term")
	case t.lease == nil: // a zero value
		return &OptionError{call, nil, call + ": no Election has made this term"}
	case ctx == nil:
		return missing(call, "context")
	}
	return nil
}

// Lead campaigns, calls fn while this process leads, and resigns when fn returns. If the term is lost
// before that, Lead cancels fn's context, waits for fn, and campaigns again: then what fn returns is
// not looked at.
//
// The context of fn derives from [Lease.Context] of the term. Without renewal it ends a tenth of the
// lease before the deadline, so that fn can stop before another process can lead; just after a remote
// hand-off, when the deadline is near, in the middle of what is left. [context.Cause] says why it
// ended: [ErrLeaseLost], [ErrMaxHold], [ErrReleased], or the cause of ctx.
//
// Calls of fn by one Lead never overlap. Those of two processes overlap if fn goes on after the end of
// its context for longer than that tenth. Nothing can stop it: see [Lease.Valid].
//
// Lead returns nil if fn did, or fn's error. If Redis has not confirmed the release, [ErrNotReleased] is
// joined to it, as by [Do]. It returns the cause of ctx if ctx ended while this process did not lead, and
// what Campaign returns otherwise. If fn panics, Lead resigns and panics.
func (e *Election) Lead(ctx context.Context, value string, fn func(ctx context.Context, t *Term) error) error {
	if err := e.check(ctx, "Lead"); err != nil {
		return err
	}
	if fn == nil {
		return missing("Lead", "function")
	}
	for {
		t, err := e.Campaign(ctx, value)
		if err != nil {
			if cause := context.Cause(ctx); cause != nil {
				return cause
			}
			return err
		}
		if lost, err := t.work(ctx, fn); !lost {
			return err
		}
	}
}

// work calls fn for the term, and resigns. It reports whether the term was lost before fn returned.
func (t *Term) work(ctx context.Context, fn func(context.Context, *Term) error) (lost bool, err error) {
	work, cancel := context.WithCancelCause(t.lease.Context(ctx))
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		t.watch(work, cancel)
	}()
	defer func() {
		overdue := !t.lease.Valid() && t.lease.Err() == nil // fn can be quicker than timers, after a pause of the process
		lost = ctx.Err() == nil && (overdue || work.Err() != nil && !errors.Is(context.Cause(work), ErrReleased))
		cancel(nil)
		<-watched
		switch ended := t.Resign(ctx); {
		case ended == nil, errors.Is(ended, ErrNotHeld):
		case unprotected(ended) == nil:
			err = errors.Join(err, &ReleaseError{t.lease.Name(), ended})
		case !errors.Is(err, ended):
			err = errors.Join(err, ended)
		}
	}()
	return false, fn(work, t)
}

// watch ends work some time before the deadline, if that is not moved on.
func (t *Term) watch(work context.Context, end context.CancelCauseFunc) {
	ahead := t.election.seat.lock.Terms.TTL / 10
	for {
		deadline := t.lease.Deadline()
		left := time.Until(deadline)
		timer := time.NewTimer(left - min(ahead, left/2))
		select {
		case <-timer.C:
			switch {
			case t.lease.Deadline().After(deadline):
			case (*engine.Lease)(t.lease).LimitedTo(time.Until(deadline) + 1): // the deadline is that of WithMaxHold
				end(ErrMaxHold)
				return
			default:
				end(&LostError{t.lease.Name(), LostDeadline})
				return
			}
		case <-work.Done():
			timer.Stop()
			return
		}
	}
}
