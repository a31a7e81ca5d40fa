package engine

import (
	"context"
	"fmt"
)

// Fact is what became of a call that did not do what it was to do, or of a lease that has ended.
type Fact uint8

const (
	NotAcquired   Fact = iota + 1
	LeaseLost          // a verdict has the reason
	MaxHoldOver        // WithMaxHold ended the lease
	Released           // the lease was unlocked
	LeaseClosed        // the manager was closed while it was held
	NotHeld            // it was unlocked before
	Closed             // the manager is
	WouldDeadlock      // the caller would wait for itself
	WrongKind          // the key holds something else
	Unavailable        // Redis
	Tokenless          // re-entry with fencing, and the first lease has no token

	// Causes.

	Upgrade     // a reader asks for the write side
	BothKinds   // the caller holds the lock of this name as the other kind
	TooLate     // a grant came when its lease had ended
	Unreleased  // the manager is closed, and some locks may not have been released
	Downgrading // the write side was unlocked, and Redis has not confirmed this
)

// Error lets a fact be a cause of another one.
func (f Fact) Error() string { return fmt.Sprintf("fact %d", uint8(f)) }

// end names the end of a lease for metrics.
func (f Fact) end() string {
	switch f {
	case Released:
		return "released"
	case MaxHoldOver:
		return "max_hold"
	case LeaseClosed:
		return "closed"
	}
	return "lost"
}

// lossReason is why a lease was lost.
type lossReason string

const (
	lostDeadline lossReason = "deadline"
	lostDeleted  lossReason = "deleted"
	lostStolen   lossReason = "stolen"
)

// Verdict is a fact and its causes. It has no name: the error for a caller is made of it, with the name that this
// caller has given the lock. A nil verdict says that all is well.
type Verdict struct {
	Fact   Fact
	Reason lossReason // of LeaseLost
	Causes []error    // none nil
}

// because drops nil causes.
func because(f Fact, causes ...error) *Verdict {
	v := &Verdict{Fact: f}
	for _, c := range causes {
		if c != nil {
			v.Causes = append(v.Causes, c)
		}
	}
	return v
}

// givenUp is the verdict on a lease that was unlocked.
var givenUp = because(Released)

// lostBy is the verdict on a lease that was lost.
func lostBy(reason lossReason) *Verdict { return &Verdict{Fact: LeaseLost, Reason: reason} }

// is reports whether v is of a fact.
func (v *Verdict) is(f Fact) bool { return v != nil && v.Fact == f }

// Unacked is why a grant was undone that too few replicas have acknowledged.
type Unacked struct {
	Want, Acked int
	Err         error // why the number is not known; nil: it is
}

func (u *Unacked) Error() string { return fmt.Sprintf("acknowledged by %d of %d", u.Acked, u.Want) }

// ContextCauses are the errors that a caller may look for when ctx has ended: why
// it was cancelled, and context.Canceled or DeadlineExceeded if that is not the
// same.
func ContextCauses(ctx context.Context) []error {
	err, cause := ctx.Err(), context.Cause(ctx)
	if err == nil || cause == err {
		return []error{err}
	}
	return []error{cause, err}
}
