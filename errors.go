package holdfast

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

// One fact, one error. Every error of this package matches at least one of these
// with errors.Is; compare with errors.Is only, they are mostly wrapped.
var (
	// ErrNotAcquired: another owner holds the lock (TryLock), or ctx ended before the lock
	// was granted. In the second case the context's cause is joined, so that errors.Is with
	// context.Canceled or DeadlineExceeded tells the two apart; if ctx had ended before the
	// call, Redis was not asked at all. Nothing stays behind that could be in anybody's way:
	// no lock, no place in a queue, no subscription; but the call does not wait until Redis has
	// been told. If a request was still unanswered, that is when its answer comes, or is overdue,
	// and then a tombstone stays in Redis for a minute and refuses late copies of it.
	ErrNotAcquired = errors.New("holdfast: lock not acquired")

	// ErrLeaseLost: the lease ended without its holder's doing. A *LostError says why.
	ErrLeaseLost = errors.New("holdfast: lease lost")

	// ErrMaxHold: the lease was ended by WithMaxHold.
	ErrMaxHold = errors.New("holdfast: maximum hold time reached")

	// ErrReleased is what Lease.Err says after Unlock, and the cause of the lease's
	// contexts then. No call returns it, but one that waits under such a context names it as
	// the cause.
	ErrReleased = errors.New("holdfast: lease released")

	// ErrNotHeld: Unlock after one that succeeded, or Extend after any.
	ErrNotHeld = errors.New("holdfast: lease already released")

	// ErrNotReleased: Do has called its function, and Redis has not confirmed the release, see
	// *ReleaseError. The lock is freed in the background, or by its TTL.
	ErrNotReleased = errors.New("holdfast: lock not known to be released")

	// ErrClosed: the manager is closed.
	ErrClosed = errors.New("holdfast: manager closed")

	// ErrWouldDeadlock: the call would wait for a lease that its own context descends from.
	ErrWouldDeadlock = errors.New("holdfast: would deadlock")

	// ErrWrongKind: the lock's key holds something other than a lock of this kind, or one of the
	// keys derived from its name (queue, tombstones, fencing counter) something else than that.
	// The error names the key and what it holds. A fencing counter is also one if it holds no
	// number, or one that is not below 2^53. The lock was not touched.
	ErrWrongKind = errors.New("holdfast: key holds something of another kind")

	// ErrInvalidName: no lock can have this name. Nothing was sent.
	ErrInvalidName = errors.New("holdfast: invalid lock name")

	// ErrInvalidOption: an option's value makes no sense, or an argument or the lock is nil, see *OptionError. Nothing
	// was sent.
	ErrInvalidOption = errors.New("holdfast: invalid option")

	// ErrUnavailable: Redis could not be asked, did not answer in time or refused to
	// act, or the client is closed; the cause is wrapped. It says nothing about who holds the lock.
	ErrUnavailable = errors.New("holdfast: redis unavailable")
)

// errUpgrade and errBothKinds say why a lock would deadlock.
var (
	errUpgrade   = errors.New("the context is that of a reader, and a writer waits for all readers")
	errBothKinds = errors.New("the context already holds this name as the other kind of lock (Mutex or FairMutex)")
)

// LostReason is why a lease was lost.
type LostReason string

const (
	// LostDeadline: no renewal was confirmed in time (or the lease is a fixed one and
	// its time is over). The lock expires in Redis after a safety margin.
	LostDeadline LostReason = "deadline"
	// LostDeleted: Redis says that the lock is gone: deleted, forced free, evicted, or
	// the data was lost.
	LostDeleted LostReason = "deleted"
	// LostStolen: Redis says that another owner holds the lock.
	LostStolen LostReason = "stolen"
)

// LostError is the error of a lost lease. It matches ErrLeaseLost.
type LostError struct {
	Name   string // of the lock, as given to its handle: before the name mapper
	Reason LostReason
}

func (e *LostError) Error() string {
	return fmt.Sprintf("%v: %s: %s", ErrLeaseLost, quote(e.Name), e.Reason)
}

// Unwrap makes errors.Is(err, ErrLeaseLost) true.
func (e *LostError) Unwrap() error { return ErrLeaseLost }

// ReleaseError is how Do reports that Redis has not confirmed the release. It matches
// ErrNotReleased. It does not match ErrUnavailable, which in an error of Do means that the function was
// not called.
type ReleaseError struct {
	Name string // of the lock, as given
	Err  error  // what Unlock returned, an ErrUnavailable
}

func (e *ReleaseError) Error() string {
	return fmt.Sprintf("%v: %s: %v", ErrNotReleased, quote(e.Name), e.Err)
}

// Unwrap makes errors.Is(err, ErrNotReleased) true.
func (e *ReleaseError) Unwrap() error { return ErrNotReleased }

// OptionError says which option is wrong and why. It matches ErrInvalidOption.
type OptionError struct {
	Option string // the name of its function, such as "WithLease"
	Value  any    // nil: an argument is nil or missing, and Reason says which of which call
	Reason string
}

func (e *OptionError) Error() string {
	if e.Value == nil { // Reason names the call and the argument that is nil or missing
		return "holdfast: " + e.Reason
	}
	return fmt.Sprintf("%v: %s(%v): %s", ErrInvalidOption, e.Option, e.Value, e.Reason)
}

// Unwrap makes errors.Is(err, ErrInvalidOption) true.
func (e *OptionError) Unwrap() error { return ErrInvalidOption }

// ReplicaError says why a grant was undone, see WithReplicas. It is joined to
// ErrUnavailable.
type ReplicaError struct {
	Want  int
	Acked int
	Err   error // why the number is not known; nil: it is
}

func (e *ReplicaError) Error() string {
	if e.Err != nil {
		return fmt.Sprintf("could not confirm acknowledgement by %d replicas: %v", e.Want, e.Err)
	}
	return fmt.Sprintf("acknowledged by %d of %d replicas", e.Acked, e.Want)
}

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

// invalidName names the lock as given, and says what the name mapper made of it, which is what is wrong.
func invalidName(name, mapped string, cause error) error {
	if mapped != name {
		cause = fmt.Errorf("mapped to %s: %w", quote(mapped), cause)
	}
	return newLockError(ErrInvalidName, name, cause)
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

// contextCauses are the errors that a caller may look for when ctx has ended: why
// it was cancelled, and context.Canceled or DeadlineExceeded if that is not the
// same.
func contextCauses(ctx context.Context) []error {
	err, cause := ctx.Err(), context.Cause(ctx)
	if err == nil || cause == err {
		return []error{err}
	}
	return []error{cause, err}
}

// quote makes a name fit for a message: printable and not endless.
func quote(name string) string {
	const most = 64
	if len(name) > most {
		return fmt.Sprintf("%q…", name[:most])
	}
	return fmt.Sprintf("%q", name)
}
