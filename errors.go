package holdfast

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/holdfast-go/holdfast/internal/lock"
	"github.com/holdfast-go/holdfast/internal/protocol"
)

// Errors of this package. Each error matches at least one of these with errors.Is. Compare with
// errors.Is, because they are usually wrapped.
var (
	// ErrNotAcquired: another owner holds the lock (TryLock), or ctx ended before the lock was
	// granted. In the second case the error also wraps the context's cause, so errors.Is with
	// context.Canceled or DeadlineExceeded tells the two apart. If ctx had ended before the call,
	// nothing was sent.
	//
	// A failed call leaves no lock, queue entry or subscription behind. Clean-up may finish after the
	// call has returned. If a request was never answered, a tombstone key stays in Redis for a minute,
	// so that a late copy of the request has no effect.
	ErrNotAcquired = errors.New("holdfast: lock not acquired")

	// ErrLeaseLost: the lease ended before its Unlock. A *LostError has the reason.
	ErrLeaseLost = errors.New("holdfast: lease lost")

	// ErrMaxHold: WithMaxHold ended the lease.
	ErrMaxHold = errors.New("holdfast: maximum hold time reached")

	// ErrReleased: the lease was unlocked. Lease.Err returns it, and it is the cause of the lease's
	// contexts. The error of a call that waited under such a context wraps it as the cause.
	ErrReleased = errors.New("holdfast: lease released")

	// ErrNotHeld: the lease was already unlocked.
	ErrNotHeld = errors.New("holdfast: lease already released")

	// ErrNotReleased: Do has called its function, or UnlockInto was called, and Redis has not confirmed the release. A
	// *ReleaseError has the cause. The lock is released in the background, or expires with its TTL.
	ErrNotReleased = errors.New("holdfast: release not confirmed")

	// ErrNoLeader: no process leads the election at this moment. Election.Leader returns it.
	ErrNoLeader = errors.New("holdfast: no leader")

	// ErrClosed: the Manager is closed.
	ErrClosed = errors.New("holdfast: manager closed")

	// ErrWouldDeadlock: the call would wait for a lease that its own context carries.
	ErrWouldDeadlock = errors.New("holdfast: would deadlock")

	// ErrWrongKind: the lock's key holds something other than a lock of this kind, or a key derived
	// from its name (queue, tombstones, fencing counter) holds something else. The error names the key
	// and what it holds. A fencing counter must hold a number below 2^53. The lock was not changed.
	ErrWrongKind = errors.New("holdfast: key is of another kind")

	// ErrInvalidName: no lock can have this name. Nothing was sent.
	ErrInvalidName = errors.New("holdfast: invalid lock name")

	// ErrInvalidOption: an option or an argument is invalid, or an argument is nil. An *OptionError
	// says which and why. Nothing was sent, unless it is that two members of a Redlock are the same server, or that a Semaphore has
	// fewer permits than its caller wants.
	ErrInvalidOption = errors.New("holdfast: invalid option")

	// ErrUnavailable: Redis could not be reached, did not answer in time or refused to act, or the
	// client is closed. The error wraps the cause. The state of the lock is unknown.
	ErrUnavailable = errors.New("holdfast: redis unavailable")
)

// LostReason is why a lease was lost.
type LostReason string

const (
	// LostDeadline: no renewal was confirmed in time, or a fixed lease has reached its end. The lock
	// expires in Redis after a safety margin.
	LostDeadline LostReason = "deadline"
	// LostDeleted: the lock is gone in Redis. It was deleted, forced free or evicted, or the data was
	// lost.
	LostDeleted LostReason = "deleted"
	// LostStolen: another owner holds the lock in Redis.
	LostStolen LostReason = "stolen"
)

// LostError is the error of a lost lease. It matches ErrLeaseLost.
type LostError struct {
	Name   string // of the lock, as given to its handle: before the name mapper
	Reason LostReason
}

// Error says which lock was lost, and why.
func (e *LostError) Error() string {
	return fmt.Sprintf("%v: %s: %s", ErrLeaseLost, quote(e.Name), e.Reason)
}

// Unwrap makes errors.Is(err, ErrLeaseLost) true.
func (e *LostError) Unwrap() error { return ErrLeaseLost }

// ReleaseError is the error of Do and Lease.UnlockInto if Redis has not confirmed the release. It matches
// ErrNotReleased. It does not match ErrUnavailable, which in an error of Do means that the function
// was not called.
type ReleaseError struct {
	Name string // of the lock, as given
	Err  error  // of Unlock: it matches ErrUnavailable
}

// Error says which release is not confirmed, and why.
func (e *ReleaseError) Error() string {
	return fmt.Sprintf("%v: %s: %v", ErrNotReleased, quote(e.Name), e.Err)
}

// Unwrap makes errors.Is(err, ErrNotReleased) true.
func (e *ReleaseError) Unwrap() error { return ErrNotReleased }

// OptionError says which option is invalid and why. It matches ErrInvalidOption.
type OptionError struct {
	Option string // the name of its function, such as "WithLease"
	Value  any    // nil if an argument is nil or missing: Reason says which
	Reason string
}

// Error says which option or argument is invalid, and why.
func (e *OptionError) Error() string {
	if e.Value == nil { // Reason names the call and the argument that is nil or missing
		return "holdfast: " + e.Reason
	}
	value := fmt.Sprint(e.Value)
	if text, ok := e.Value.(string); ok && text == "" {
		value = quote(text)
	}
	return fmt.Sprintf("%v: %s(%s): %s", ErrInvalidOption, e.Option, value, e.Reason)
}

// Unwrap makes errors.Is(err, ErrInvalidOption) true.
func (e *OptionError) Unwrap() error { return ErrInvalidOption }

// missing is the error of a call one of whose arguments is nil.
func missing(call, what string) error { return &OptionError{call, nil, call + ": " + what + " is nil"} }

// ReplicaError says why a grant was undone, see WithReplicas. It is joined to ErrUnavailable.
type ReplicaError struct {
	Want  int
	Acked int
	Err   error // set if the number of acknowledgements could not be determined
}

// Error says how many replicas WithReplicas wants, and how many have acknowledged the grant.
func (e *ReplicaError) Error() string {
	if e.Err != nil {
		return fmt.Sprintf("could not confirm acknowledgement by %d replicas: %v", e.Want, e.Err)
	}
	return fmt.Sprintf("acknowledged by %d of %d replicas", e.Acked, e.Want)
}

// Unwrap returns Err.
func (e *ReplicaError) Unwrap() error { return e.Err }

// lockError is an error about one lock: a sentinel and what caused it.
type lockError struct {
	sentinel error
	name     string  // of the lock; empty: no particular one
	causes   []error // none nil
}

// newLockError drops nil causes.
func newLockError(sentinel error, name string, causes ...error) error {
	e := &lockError{sentinel: sentinel, name: name}
	for _, c := range causes {
		if c != nil {
			e.causes = append(e.causes, c)
		}
	}
	return e
}

// errorOf makes the error of a verdict, which is not nil.
func errorOf(name string, v *lock.Verdict) error {
	switch v.Fact {
	case lock.LeaseLost:
		return &LostError{name, LostReason(v.Reason)}
	case lock.MaxHoldOver:
		return newLockError(ErrMaxHold, name)
	case lock.Released:
		return ErrReleased
	case lock.LeaseClosed:
		return newLockError(ErrClosed, name)
	case lock.TooManyPermits:
		return &OptionError{"Acquire", nil, "semaphore " + quote(name) + " has fewer permits than its caller wants"}
	case lock.Tokenless:
		return &OptionError{"WithFencing", "re-entry", "the first lease of this owner has no token"}
	case lock.HoldShared:
		return &OptionError{"Detach", nil, "Detach: another lease of lock " + quote(name) + " shares what this process has in Redis: by re-entry, or of another reader"}
	case lock.StaysTaken:
		return &OptionError{"Detach", nil, "Detach: lock " + quote(name) + " was taken with WithHoldAtLeast"}
	}
	causes := make([]error, len(v.Causes))
	for i, c := range v.Causes {
		switch c := c.(type) {
		case lock.Fact:
			causes[i] = sentinels[c]
		case *protocol.Unacked:
			causes[i] = &ReplicaError{c.Want, c.Acked, c.Err}
		default:
			causes[i] = c
		}
	}
	return newLockError(sentinels[v.Fact], name, causes...)
}

var errTooLate = errors.New("reply arrived after the lease had expired")

// sentinels are what the errors of verdicts match, and their causes.
var sentinels = map[lock.Fact]error{
	lock.NotAcquired:   ErrNotAcquired,
	lock.NotHeld:       ErrNotHeld,
	lock.Closed:        ErrClosed,
	lock.WouldDeadlock: ErrWouldDeadlock,
	lock.WrongKind:     ErrWrongKind,
	lock.Unavailable:   ErrUnavailable,

	lock.Upgrade:     errors.New("a reader cannot become a writer: unlock the read side first"),
	lock.BothKinds:   errors.New("the context holds the lock of this name as the other kind (Mutex or FairMutex)"),
	lock.OwnPermits:  errors.New("the context holds so many of its permits that too few are left"),
	lock.TooLate:     errTooLate,
	lock.Unreleased:  errors.New("manager closed, but some locks may not have been released"),
	lock.HeldHere:    errors.New("this process holds it: a call re-enters only under the context of that lease"),
	lock.Downgrading: errors.New("the write side was unlocked, and Redis has not confirmed this yet"),
}

func (e *lockError) Error() string {
	var b strings.Builder
	b.WriteString(e.sentinel.Error())
	if e.name != "" || e.sentinel == ErrInvalidName {
		b.WriteString(": ")
		b.WriteString(quote(e.name))
	}
	for _, c := range e.causes {
		b.WriteString(": ")
		b.WriteString(c.Error())
	}
	return b.String()
}

func (e *lockError) Unwrap() []error { return append([]error{e.sentinel}, e.causes...) }

// quote makes a name fit for a message: printable and not endless.
func quote(name string) string {
	const most = 64
	if len(name) > most {
		return fmt.Sprintf("%q…", name[:most])
	}
	return fmt.Sprintf("%q", name)
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
