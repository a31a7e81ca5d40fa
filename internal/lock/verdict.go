package lock

import "strconv"

// Fact is what became of a call that did not do what it was to do, or of a lease that has ended.
type Fact uint8

const (
	NotAcquired    Fact = iota + 1
	LeaseLost           // a verdict has the reason
	MaxHoldOver         // WithMaxHold ended the lease
	Released            // the lease was unlocked
	LeaseClosed         // the manager was closed while it was held
	NotHeld             // it was unlocked before
	Closed              // the manager is
	WouldDeadlock       // the caller would wait for itself
	WrongKind           // the key holds something else
	Unavailable         // Redis
	Tokenless           // re-entry with fencing, and the first lease has no token
	TooManyPermits      // a semaphore has fewer than the caller wants
	HoldShared          // Detach: another lease would end as well
	StaysTaken          // Detach: WithHoldAtLeast

	// Causes.

	Upgrade     // a reader asks for the write side
	BothKinds   // the caller holds the lock of this name as the other kind
	OwnPermits  // the caller holds too many permits of the semaphore
	TooLate     // a grant came when its lease had ended
	Unreleased  // the manager is closed, and some locks may not have been released
	HeldHere    // a caller of this process holds it
	Downgrading // the write side was unlocked, and Redis has not confirmed this
)

// Error lets a fact be a cause of another one.
func (f Fact) Error() string { return "fact " + strconv.Itoa(int(f)) }

// Reason is why a lease was lost.
type Reason string

const (
	LostDeadline Reason = "deadline"
	LostDeleted  Reason = "deleted"
	LostStolen   Reason = "stolen"
)

// Verdict is a fact and its causes. It has no name: the error for a caller is made of it, with the name that this
// caller has given the lock. A nil verdict says that all is well.
type Verdict struct {
	Fact   Fact
	Reason Reason  // of LeaseLost
	Causes []error // none nil
}

// Because drops nil causes.
func Because(f Fact, causes ...error) *Verdict {
	v := &Verdict{Fact: f}
	for _, c := range causes {
		if c != nil {
			v.Causes = append(v.Causes, c)
		}
	}
	return v
}

// givenUp is the verdict on a lease that was unlocked.
var givenUp = Because(Released)

// lostBy is the verdict on a lease that was lost.
func lostBy(reason Reason) *Verdict { return &Verdict{Fact: LeaseLost, Reason: reason} }

// Is reports whether v is of a fact.
func (v *Verdict) Is(f Fact) bool { return v != nil && v.Fact == f }
