package lock

import (
	"slices"
	"time"
)

// Kind is which lock, and which side of it, a caller wants or holds. What makes it is in its rules.
type Kind uint8

const (
	MutexKind Kind = iota
	FairKind
	SemaphoreKind
	WriteKind // of families: both sides of a read-write lock
	ReadKind
	MultiKind // several locks; of leases and telemetry only
	RedlockKind
)

// Families is how many kinds have entries of their own: those up to WriteKind.
const Families = WriteKind + 1

func (k Kind) String() string {
	return [...]string{"mutex", "fair", "semaphore", "write", "read", "multi", "redlock"}[k]
}

// Mode is how a lease came about, for traces.
type Mode uint8

const (
	AtOnce    Mode = iota // by the first request to Redis after the call
	AfterWait             // by a later one
	ByHandoff             // by the caller before, or beside other readers, in this process
	ByServer              // by Redis, with the release of another owner
	Reentry               // its context carried a lease of the lock

	Modes = iota
)

func (g Mode) String() string {
	return [...]string{"fast", "wait", "handoff", "grant", "reentry"}[g]
}

// rules are what makes a kind of lock, or a side of one. All else is the same for all kinds: the state machine asks the rules of
// a kind, and never which kind it is (TestPolicy_KindsAreComparedInTheirFiles). A kind has a file: mutex.go, fair.go and rw.go have the rules and
// what they need.
//
// What a lock asks, it asks of the kind that the lock was made for; what a hold or a waiter asks, of its own side of the lock.
type rules struct {
	bidsEach   bool // each waiter has a bid, and a place of its own in Redis's queue; else one bid stands for all waiters of the process
	company    company
	passes     bool // a hold whose last lease is gone goes to the next waiter here, without a word to Redis; see Hold.passes
	lingers    bool // a hold that no caller uses may stay with the process: see linger.go
	stepsAside bool // the caller that comes back after the lock went to another process lets a moment pass; see mutex.go
}

// company is which holds of other owners a hold can be beside.
type company uint8

const (
	exclusive company = iota // none
	beside                   // those that are not exclusive
	joint                    // likewise, and all callers here that wait for one can have the same
)

// kinds are the rules of all kinds that have holds.
var kinds = [...]rules{MutexKind: mutexRules, FairKind: fairRules, SemaphoreKind: semaphoreRules, WriteKind: writeRules, ReadKind: readRules}

// Shared reports whether several owners in several processes can hold a lock of this kind at a time.
func (k Kind) Shared() bool { return kinds[k].company != exclusive }

// Reenters reports whether a caller under the context of a lease shares its hold.
func (k Kind) Reenters() bool { return kinds[k].company != beside }

// Lingers reports whether the process can keep a lock of this kind after Unlock.
func (k Kind) Lingers() bool { return kinds[k].lingers }

// admits reports whether a hold of kind k can be beside those of the process.
func (lk *Lock) admits(k Kind) bool {
	return lk.hold == nil && (k.Shared() || lk.shared.none())
}

// conflicts returns the holds beside which Redis does not grant one of kind k, unless they were deleted there.
func (lk *Lock) conflicts(k Kind) []*Hold {
	switch {
	case !k.Shared():
		return lk.Holds()
	case lk.hold != nil:
		return []*Hold{lk.hold}
	}
	return nil
}

// inTheWay reports whether a hold or a waiter of this process keeps a caller that does not wait from getting
// the lock. A hold beyond its deadline does not, even if its end has not been handled yet, after a pause of the
// process. Then the caller sends a request.
func (lk *Lock) inTheWay(k Kind, now time.Time) bool {
	switch front := lk.waiters.head; {
	case lk.hold != nil:
		return now.Before(lk.hold.Deadline)
	case k.Shared():
		return front != nil && !front.Once && kinds[front.Kind].company != joint
	}
	return slices.ContainsFunc(lk.shared.all(), func(h *Hold) bool { return now.Before(h.Deadline) })
}

// take adds h, which has just been granted, to what the process holds.
func (lk *Lock) take(h *Hold) {
	if h.Kind.Shared() {
		lk.addShared(h)
	} else {
		lk.hold = h
	}
}

// Terms are what the options of a lock add up to.
type Terms struct {
	Options
	Claim time.Duration // TTL of a grant to another process
	Total int           // of a semaphore: how many permits its caller believes that there are
	Shell any           // the shell's: for how requests are made
}

// Options are compared: two callers with equal ones can use one hold.
type Options struct {
	TTL       time.Duration
	Fixed     bool          // not renewed
	MaxHold   time.Duration // 0: none
	AtLeast   time.Duration // for how long the lock stays taken; 0: until it is given up
	Linger    time.Duration // for how long the process keeps it after Unlock, for its next caller; 0: it does not
	Wanted    bool          // other processes tell this one that they want the lock
	Fencing   bool
	Value     string        // in the owner id; empty: none
	AckWithin time.Duration // for how long a grant waits for acknowledgements of replicas; 0: for none
	Permits   int           // of a semaphore: how many a hold has; 0: it is another kind
}

// hears reports whether other processes tell this one that they want the lock.
func (t *Terms) hears() bool { return t.Linger > 0 || t.Wanted }

// suit reports whether t and o are of equal options.
func (t *Terms) suit(o *Terms) bool { return t == o || t.Options == o.Options }

// MaxClaim bounds for how long a grant to a process that is dead, or stopped, or does
// not hear of it keeps others out. A lock that is held for longer than 25 ms is renewed
// then, which gives it its own TTL; shorter ones are spared that command.
const MaxClaim = 2 * time.Second
