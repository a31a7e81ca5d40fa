package holdfast

import (
	"context"
	"iter"
	"time"

	"github.com/holdfast-go/holdfast/internal/engine"
)

// LocalState is what a process does with a lock.
type LocalState string

const (
	LocalHeld      LocalState = "held"      // a caller of this process has a lease
	LocalWaiting   LocalState = "waiting"   // callers of this process wait, and none has a lease
	LocalReleasing LocalState = "releasing" // an Unlock waits for Redis, or a claim is undone, and no caller waits
)

// LocalLock is what this process knows about one lock that it holds, waits for or releases.
//
// If the process holds a read-write lock by several leases, Since, Label, WaitMode, Token, Renewed and
// RoundTrip are those of the oldest lease, and Deadline is the earliest.
type LocalLock struct {
	Name  string // as given
	Kind  Kind   // KindMutex, KindFair, KindRead or KindWrite
	State LocalState
	Since time.Time // when the lease was granted, the oldest waiter came, or the release began
	Label string    // what WithLabel said of that caller; empty: nothing

	// Of a lock that is held; else zero.

	Deadline  time.Time     // as Lease.Deadline
	Leases    int           // leases of callers: of one owner that has re-entered, or of readers
	WaitMode  string        // how the lease was granted: fast, wait, handoff, grant or reentry, as in spans
	Token     uint64        // fencing token; 0: none
	Renewed   time.Time     // when the latest renewal that succeeded was sent; zero: there was none yet
	RoundTrip time.Duration // how long that renewal took

	// Of callers of this process that wait for the lock, whether it is held here or not.

	Waiters      int
	WaitingSince time.Time // when the oldest of them came, to a millisecond; zero: none waits
	WaiterLabel  string    // what WithLabel said of it
}

// Locks returns what this process holds, waits for and releases, in no particular order. The locks of a
// [Multi] or [Redlock] are listed one by one.
//
// Locks does no I/O. It copies each lock while it iterates, so a lock that changes meanwhile may be
// missing or out of date. The loop may call any method of this package. For what Redis knows about a
// lock, use [Manager.Inspect].
func (m *Manager) Locks() iter.Seq[LocalLock] {
	return func(yield func(LocalLock) bool) {
		if m == nil {
			return
		}
		m.engine.Locals(func(l engine.Local) bool { return yield(localLock(l)) })
	}
}

// localLock is l for users.
func localLock(l engine.Local) LocalLock {
	return LocalLock{
		Name: l.Name, Kind: publicKind(l.Kind), State: LocalState(l.State), Since: l.Since, Label: l.Label,
		Deadline: l.Deadline, Leases: l.Leases, WaitMode: l.WaitMode, Token: l.Token, Renewed: l.Renewed, RoundTrip: l.RoundTrip,
		Waiters: l.Waiters, WaitingSince: l.WaitingSince, WaiterLabel: l.WaiterLabel,
	}
}

// publicKind is a kind as users see it.
func publicKind(k engine.Kind) Kind {
	return [...]Kind{KindMutex, KindFair, KindWrite, KindRead}[k]
}

// Contention is how much the callers of this process wait for one lock.
type Contention struct {
	Name string // as given

	// Waits counts the callers that had to wait for another owner. A wait that ended a minute ago counts
	// half, one that ended two minutes ago a quarter, and so on.
	Waits float64

	// Excess is how much of Waits may belong to other names. It is 0 unless callers wait for more than 256
	// names.
	Excess float64
}

// Contended returns the n names for which callers of this process have lately waited most often, the
// busiest first. It knows at most 256 names, so that its memory is bounded: see [Contention]. It does no
// I/O.
func (m *Manager) Contended(n int) []Contention {
	if m == nil {
		return nil
	}
	var all []Contention
	for _, c := range m.engine.ContendedNames(n) {
		all = append(all, Contention{c.Name, c.Events, c.Excess})
	}
	return all
}

// WithLabel returns a copy of ctx that says what its caller does, such as "checkout". The locks that are
// waited for and taken under it have that label in [Manager.Locks], and nowhere else. Use few labels,
// and no secrets. WithLabel panics with an *[OptionError] if ctx is nil.
func WithLabel(ctx context.Context, label string) context.Context {
	if ctx == nil {
		panic(missing("WithLabel", "context"))
	}
	return engine.WithLabel(ctx, label)
}
