package holdfast

import (
	"context"
	"iter"
	"time"

	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/lock"
	"github.com/holdfast-go/holdfast/internal/telemetry"
)

// LocalState is what a process does with a lock.
type LocalState string

const (
	LocalHeld      LocalState = "held"      // a caller of this process has a lease
	LocalWaiting   LocalState = "waiting"   // callers of this process wait, and none has a lease
	LocalIdle      LocalState = "idle"      // the process keeps the lock after Unlock, by WithLinger: no caller has a lease or waits
	LocalReleasing LocalState = "releasing" // an Unlock waits for Redis, or a claim is undone, and no caller waits
)

// LocalLock is what this process knows about one lock that it holds, waits for or releases.
//
// If the process holds a read-write lock or a semaphore by several leases, Since, Label, WaitMode, Token, Renewed and
// RoundTrip are those of the oldest lease, and Deadline is the earliest.
type LocalLock struct {
	Name  string // as given
	Kind  Kind   // KindMutex, KindFair, KindSemaphore, KindRead or KindWrite
	State LocalState
	Since time.Time // when the lease was granted, the oldest waiter came, the release or the idle time began
	Label string    // what WithLabel said of that caller; empty: nothing

	// Of a lock that is held; else zero.

	Deadline  time.Time     // as Lease.Deadline, and likewise of a lock that is idle
	Leases    int           // leases of callers: of one owner that has re-entered, of readers, or of holders of permits
	Permits   int           // of a semaphore: how many permits these have
	WaitMode  string        // how the lease was granted: fast, wait, handoff, grant or reentry, as in spans
	Token     uint64        // fencing token; 0: none
	Renewed   time.Time     // when the latest renewal that succeeded was sent; zero: there was none yet
	RoundTrip time.Duration // how long that renewal took

	// Of callers of this process that wait for the lock, whether it is held here or not.

	Waiters      int
	WaitingSince time.Time // when the oldest of them came, to a millisecond; zero: none waits
	WaiterLabel  string    // what WithLabel said of it

	// WaiterHolds names the locks whose leases the context of that caller carries, the innermost first. It
	// has them while it waits for this lock. Leases that it has without their context are not known.
	WaiterHolds []string
}

// Locks returns what this process holds, waits for and releases, in no particular order. The locks of a
// [Multi] or [Redlock] are listed one by one.
//
// Locks does no I/O. It copies each lock while it iterates, so a lock that changes meanwhile may be
// missing or out of date. The loop may call any method of this package. For what Redis knows about a
// lock, use [Manager.Inspect].
func (m *Manager) Locks() iter.Seq[LocalLock] {
	return func(yield func(LocalLock) bool) {
		if !m.made() {
			return
		}
		m.engine.Locals(func(l engine.Local) bool { return yield(localLock(l)) })
	}
}

// localLock is l for users.
func localLock(l engine.Local) LocalLock {
	return LocalLock{
		Name: l.Name, Kind: publicKind(l.Kind), State: LocalState(l.State), Since: l.Since, Label: l.Label,
		Deadline: l.Deadline, Leases: l.Leases, Permits: l.Permits, WaitMode: l.WaitMode, Token: l.Token, Renewed: l.Renewed, RoundTrip: l.RoundTrip,
		Waiters: l.Waiters, WaitingSince: l.WaitingSince, WaiterLabel: l.WaiterLabel, WaiterHolds: l.WaiterHolds,
	}
}

// publicKind is a kind as users see it.
func publicKind(k lock.Kind) Kind {
	return [...]Kind{KindMutex, KindFair, KindSemaphore, KindWrite, KindRead}[k]
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
	if !m.made() {
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
// and no secrets; what is beyond 1 KiB of one is left out. WithLabel panics with an *[OptionError] if ctx is nil.
func WithLabel(ctx context.Context, label string) context.Context {
	if ctx == nil {
		panic(missing("WithLabel", "context"))
	}
	return engine.WithLabel(ctx, label)
}

// Stats are one manager's counters since New and its gauges. The counters are read one by
// one: a Stats taken under load need not add up.
type Stats struct {
	// Gauges.
	Held          int // holds in Redis that this process keeps
	Waiting       int // callers waiting for a lock
	Locks         int // names in use: held, waited for, being released, or handed to another process a moment ago
	Subscriptions int // channels subscribed

	// Callers.
	Reentered uint64 // leases granted by re-entry
	HandedOff uint64 // leases granted without Redis: passed on by Unlock, or beside other readers
	Granted   uint64 // leases granted to a queued waiter by another process's release
	Released  uint64 // leases ended by Unlock
	Lost      uint64 // holds that ended before their Unlock, including those that WithMaxHold ended

	// Redis.
	Commands        uint64 // script calls sent, including repeated ones; one can be for many locks
	Batches         uint64 // pipelines they were sent in
	Troubles        uint64 // requests that failed, were refused or took too long
	Outages         uint64 // times when Redis answered no request for a second or more
	Renewals        uint64 // holds renewed
	RenewalFailures uint64 // holds whose renewal failed and was tried again
	Wakeups         uint64 // messages for waiters: grants, and reasons to send a request again
	Polls           uint64 // requests of waiters sent because no message arrived
	Reconnects      uint64 // pub/sub connections lost; repeated failures to reconnect count once
	Unheard         uint64 // those of them that were alive and brought no messages
}

// Stats returns the manager's figures. It does no I/O and is for humans and tests: it
// visits every lock that the process knows.
func (m *Manager) Stats() Stats {
	if !m.made() {
		return Stats{}
	}
	commands, batches := m.engine.Executor.Commands()
	s := Stats{
		Subscriptions:   m.engine.Subscriber.Subscriptions(),
		Reentered:       m.engine.Classes.Count(lock.Reentry),
		HandedOff:       m.engine.Classes.Count(lock.ByHandoff),
		Granted:         m.engine.Stats.Granted.Load(),
		Released:        m.engine.Stats.Released.Load(),
		Lost:            m.engine.Stats.Lost.Load(),
		Commands:        commands,
		Batches:         batches,
		Troubles:        m.engine.Stats.Troubles.Load(),
		Outages:         m.engine.Stats.Outages.Load(),
		Renewals:        m.engine.Stats.Renewals.Load(),
		RenewalFailures: m.engine.Stats.RenewalFailures.Load(),
		Wakeups:         m.engine.Stats.Wakeups.Load(),
		Polls:           m.engine.Stats.Polls.Load(),
		Reconnects:      m.engine.Stats.Reconnects.Load(),
		Unheard:         m.engine.Stats.Unheard.Load(),
	}
	s.Locks, s.Waiting, s.Held = m.engine.Counts()
	return s
}

// gauges returns what metrics show of Stats.
func (m *Manager) gauges() telemetry.Gauges {
	s := m.Stats()
	g := telemetry.Gauges{
		Held: s.Held, Waiting: s.Waiting, Subscriptions: s.Subscriptions,
		HeldOldest: make(telemetry.Oldest), WaitingOldest: make(telemetry.Oldest), Permits: make(map[string]int64),
	}
	m.engine.Gauge(g)
	return g
}

// totals returns what metrics count of what the manager has counted.
func (m *Manager) totals() telemetry.Totals {
	return telemetry.Totals{Polls: m.engine.Stats.Polls.Load(), Troubles: m.engine.Stats.Troubles.Load(), Grants: m.engine.Classes.Grants()}
}
