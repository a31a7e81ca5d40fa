package lock

import "time"

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
// a kind, and never which kind it is (TestPolicy_KindsAreComparedInTheirFiles). Only shared.go and fair.go know kinds, because they have what no other
// kind needs.
//
// What a lock asks, it asks of the kind that the lock was made for; what a hold or a waiter asks, of its own side of the lock.
type rules struct {
	bidsEach   bool // each waiter has a bid, and a place of its own in Redis's queue; else one bid stands for all waiters of the process
	company    company
	passes     bool // a hold whose last lease is gone goes to the next waiter here, without a word to Redis; see Hold.passes
	lingers    bool // a hold that no caller uses may stay with the process: see linger.go
	stepsAside bool // the caller that comes back after the lock went to another process lets a moment pass; see aside.go
}

// company is which holds of other owners a hold can be beside.
type company uint8

const (
	exclusive company = iota // none
	beside                   // those that are not exclusive
	joint                    // likewise, and all callers here that wait for one can have the same
)

// kinds are the rules of all kinds that have holds.
var kinds = [...]rules{
	// It has one owner at a time, and its waiters come in no order between processes.
	MutexKind: {passes: true, lingers: true, stepsAside: true},

	// Its waiters are granted the lock in the order of their calls, among all processes. So each has a place in Redis's queue, and a hold
	// that is given up goes to Redis, which knows whose turn it is.
	FairKind: {bidsEach: true},

	// Each owner has permits of its own beside the others. One claim at a time stands for all waiters of the process, as for a mutex, so
	// that processes take turns. A hold goes to the next caller here that wants as many.
	SemaphoreKind: {company: beside, passes: true},

	// A writer excludes all others.
	WriteKind: {passes: true, lingers: true},

	// Readers share one hold where they can, whose last Unlock gives it back: a writer of another process may wait for that.
	ReadKind: {company: joint, lingers: true},
}

// Lingers reports whether the process can keep a lock of this kind after Unlock.
func (k Kind) Lingers() bool { return kinds[k].lingers }

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

// suit reports whether t and o are of equal options.
func (t *Terms) suit(o *Terms) bool { return t == o || t.Options == o.Options }

// MaxClaim bounds for how long a grant to a process that is dead, or stopped, or does
// not hear of it keeps others out. A lock that is held for longer than 25 ms is renewed
// then, which gives it its own TTL; shorter ones are spared that command.
const MaxClaim = 2 * time.Second
