package holdfast

import (
	"errors"
	"fmt"
	"slices"

	"github.com/holdfast-go/holdfast/internal/command"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/lock"
	"github.com/holdfast-go/holdfast/internal/wire"
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
	ErrNotAcquired = error(lock.NotAcquired)

	// ErrLeaseLost: the lease ended before its Unlock. A *LostError has the reason.
	ErrLeaseLost = error(lock.LeaseLost)

	// ErrMaxHold: WithMaxHold ended the lease.
	ErrMaxHold = error(lock.MaxHoldOver)

	// ErrReleased: the lease was unlocked. Lease.Err returns it, and it is the cause of the lease's
	// contexts. The error of a call that waited under such a context wraps it as the cause.
	ErrReleased = error(lock.Released)

	// ErrNotHeld: the lease was already unlocked.
	ErrNotHeld = error(lock.NotHeld)

	// ErrNotReleased: Do has called its function, or UnlockInto was called, and Redis has not confirmed the release. A
	// *ReleaseError has the cause. The lock is released in the background, or expires with its TTL.
	ErrNotReleased = errors.New("holdfast: release not confirmed")

	// ErrNoLeader: no process leads the election at this moment. Election.Leader returns it.
	ErrNoLeader = errors.New("holdfast: no leader")

	// ErrClosed: the Manager is closed.
	ErrClosed = error(lock.Closed)

	// ErrWouldDeadlock: the call would wait for a lease that its own context carries.
	ErrWouldDeadlock = error(lock.WouldDeadlock)

	// ErrWrongKind: the lock's key holds something other than a lock of this kind, or a key derived
	// from its name (queue, tombstones, fencing counter) holds something else. The error names the key
	// and what it holds. A fencing counter must hold a number below 2^53. The lock was not changed.
	ErrWrongKind = error(lock.WrongKind)

	// ErrInvalidName: no lock can have this name. Nothing was sent.
	ErrInvalidName = error(lock.InvalidName)

	// ErrInvalidOption: an option or an argument is invalid, or an argument is nil. An *OptionError
	// says which and why. Nothing was sent, unless it is that two members of a Redlock are the same server, or that a Semaphore has
	// fewer permits than its caller wants.
	ErrInvalidOption = error(lock.InvalidOption)

	// ErrUnavailable: Redis could not be reached, did not answer in time or refused to act, or the
	// client is closed. The error wraps the cause. The state of the lock is unknown.
	ErrUnavailable = error(lock.Unavailable)
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
	return fmt.Sprintf("%v: %s: %s", ErrLeaseLost, wire.Quote(e.Name), e.Reason)
}

// Unwrap makes errors.Is(err, ErrLeaseLost) true.
func (e *LostError) Unwrap() error { return lock.Reason(e.Reason) }

// ReleaseError is the error of Do and Lease.UnlockInto if Redis has not confirmed the release. It matches
// ErrNotReleased. It does not match ErrUnavailable, which in an error of Do means that the function
// was not called.
type ReleaseError struct {
	Name string // of the lock, as given
	Err  error  // of Unlock: it matches ErrUnavailable
}

// Error says which release is not confirmed, and why.
func (e *ReleaseError) Error() string {
	return fmt.Sprintf("%v: %s: %v", ErrNotReleased, wire.Quote(e.Name), e.Err)
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
		value = wire.Quote(text)
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

// errorOf makes the error of a verdict, which is not nil.
func errorOf(name string, v *lock.Verdict) error {
	switch v.Fact {
	case lock.LeaseLost:
		return &LostError{name, LostReason(v.Reason)}
	case lock.Released:
		return ErrReleased
	case lock.TooManyPermits:
		return &OptionError{"Acquire", nil, "semaphore " + wire.Quote(name) + " has fewer permits than its caller wants"}
	case lock.OneServer:
		return &OptionError{"NewRedlock", name, v.Causes[0].Error()}
	case lock.Tokenless:
		return &OptionError{"WithFencing", "re-entry", "the first lease of this owner has no token"}
	case lock.HoldShared:
		return &OptionError{"Detach", nil, "Detach: another lease of lock " + wire.Quote(name) + " shares what this process has in Redis: by re-entry, or of another reader"}
	case lock.StaysTaken:
		return &OptionError{"Detach", nil, "Detach: lock " + wire.Quote(name) + " was taken with WithHoldAtLeast"}
	}
	causes := slices.Clone(v.Causes)
	for i, c := range causes {
		if few, ok := c.(*command.Unacked); ok {
			causes[i] = &ReplicaError{few.Want, few.Acked, few.Err}
		}
	}
	return engine.NewError(v.Fact, name, causes...)
}
