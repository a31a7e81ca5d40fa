package holdfast

import (
	"context"
	"fmt"
)

// fact is what became of a call that did not do what it was to do, or of a lease that has ended.
type fact uint8

const (
	notAcquired   fact = iota + 1
	leaseLost          // a verdict has the reason
	maxHoldOver        // WithMaxHold ended the lease
	released           // the lease was unlocked
	leaseClosed        // the manager was closed while it was held
	notHeld            // it was unlocked before
	closed             // the manager is
	wouldDeadlock      // the caller would wait for itself
	wrongKind          // the key holds something else
	unavailable        // Redis
	tokenless          // re-entry with fencing, and the first lease has no token

	// Causes.

	upgrade     // a reader asks for the write side
	bothKinds   // the caller holds the lock of this name as the other kind
	tooLate     // a grant came when its lease had ended
	unreleased  // the manager is closed, and some locks may not have been released
	downgrading // the write side was unlocked, and Redis has not confirmed this
)

// Error lets a fact be a cause of another one.
func (f fact) Error() string { return fmt.Sprintf("fact %d", uint8(f)) }

// end names the end of a lease for metrics.
func (f fact) end() string {
	switch f {
	case released:
		return "released"
	case maxHoldOver:
		return "max_hold"
	case leaseClosed:
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

// verdict is a fact and its causes. It has no name: an error is made of it where a caller is told, with the name that
// this caller has given the lock. A nil verdict says that all is well.
type verdict struct {
	fact   fact
	reason lossReason // of leaseLost
	causes []error    // none nil
}

// because drops nil causes.
func because(f fact, causes ...error) *verdict {
	v := &verdict{fact: f}
	for _, c := range causes {
		if c != nil {
			v.causes = append(v.causes, c)
		}
	}
	return v
}

// givenUp is the verdict on a lease that was unlocked.
var givenUp = because(released)

// lostBy is the verdict on a lease that was lost.
func lostBy(reason lossReason) *verdict { return &verdict{fact: leaseLost, reason: reason} }

// is reports whether v is of a fact.
func (v *verdict) is(f fact) bool { return v != nil && v.fact == f }

// unacked is why a grant was undone that too few replicas have acknowledged.
type unacked struct {
	want, acked int
	err         error // why the number is not known; nil: it is
}

func (u *unacked) Error() string { return fmt.Sprintf("acknowledged by %d of %d", u.acked, u.want) }

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
