package lock

// Fact is what became of a call that did not do what it was to do, or of a lease that has ended. It is what errors.Is finds in the
// error of that call.
type Fact uint8

const (
	NotAcquired    Fact = iota + 1
	LeaseLost           // a verdict has the reason
	MaxHoldOver         // WithMaxHold ended the lease
	Released            // the lease was unlocked
	NotHeld             // it was unlocked before
	Closed              // the manager is, or was while the lease was held
	WouldDeadlock       // the caller would wait for itself
	WrongKind           // the key holds something else
	Unavailable         // Redis
	Tokenless           // re-entry with fencing, and the first lease has no token
	TooManyPermits      // a semaphore has fewer than the caller wants
	HoldShared          // Detach: another lease would end as well
	StaysTaken          // Detach: WithHoldAtLeast
	OneServer           // two members of a Redlock are; the cause says which

	// Of calls that no lock learns of.

	InvalidName
	InvalidOption

	// Causes.

	Upgrade     // a reader asks for the write side
	BothKinds   // the caller holds the lock of this name as the other kind
	OwnPermits  // the caller holds too many permits of the semaphore
	TooLate     // a grant came when its lease had ended
	Unreleased  // the manager is closed, and some locks may not have been released
	HeldHere    // a caller of this process holds it
	Downgrading // the write side was unlocked, and Redis has not confirmed this
)

// texts are those of the facts that an error is of, or has as a cause.
var texts = [...]string{
	NotAcquired:   "holdfast: lock not acquired",
	LeaseLost:     "holdfast: lease lost",
	MaxHoldOver:   "holdfast: maximum hold time reached",
	Released:      "holdfast: lease released",
	NotHeld:       "holdfast: lease already released",
	Closed:        "holdfast: manager closed",
	WouldDeadlock: "holdfast: would deadlock",
	WrongKind:     "holdfast: key is of another kind",
	Unavailable:   "holdfast: redis unavailable",
	InvalidName:   "holdfast: invalid lock name",
	InvalidOption: "holdfast: invalid option",

	Upgrade:     "a reader cannot become a writer: unlock the read side first",
	BothKinds:   "the context holds the lock of this name as the other kind (Mutex or FairMutex)",
	OwnPermits:  "the context holds so many of its permits that too few are left",
	TooLate:     "reply arrived after the lease had expired",
	Unreleased:  "manager closed, but some locks may not have been released",
	HeldHere:    "this process holds it: a call re-enters only under the context of that lease",
	Downgrading: "the write side was unlocked, and Redis has not confirmed this yet",
}

// Error lets a fact be an error, and a cause of another one.
func (f Fact) Error() string { return texts[f] }

// Reason is why a lease was lost. As an error it is LeaseLost.
type Reason string

// Error is what is said of one lock among several.
func (r Reason) Error() string { return "lease lost: " + string(r) }

// Is makes errors.Is find LeaseLost.
func (Reason) Is(f error) bool { return f == LeaseLost }

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
