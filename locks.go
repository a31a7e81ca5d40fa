package holdfast

import (
	"context"
	"iter"
	"time"

	"github.com/holdfast-go/holdfast/internal/telemetry"
	"github.com/holdfast-go/holdfast/internal/validity"
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
	WaitingSince time.Time // when the oldest of them came; zero: none waits
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
		for _, e := range m.snapshot() {
			if l, ok := e.local(); ok && !yield(l) {
				return
			}
		}
	}
}

// local returns what the process does with the lock; false: nothing.
func (e *entry) local() (LocalLock, bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	l := LocalLock{Name: e.name, Kind: e.kind.public()}
	if w := e.waiters.Front(); w != nil {
		l.Waiters, l.WaitingSince, l.WaiterLabel = e.waiters.Len(), e.m.at(w.Value.came), textOf(w.Value.label)
		l.Name, l.Kind, l.State, l.Since, l.Label = w.Value.h.name, w.Value.h.kind.public(), LocalWaiting, l.WaitingSince, l.WaiterLabel
	} else if e.releasing+e.orphans > 0 {
		l.State, l.Since = LocalReleasing, e.m.at(e.silent)
	}
	if first := e.leasesLocked(&l); first != nil {
		h := first.hold
		l.Name, l.Kind, l.State = first.name, h.kind.public(), LocalHeld
		l.Since, l.Label, l.WaitMode, l.Token = e.m.at(first.since), textOf(first.label), first.how.String(), first.token
		l.Renewed, l.RoundTrip = time.Time{}, 0
		if h.renewed != 0 {
			l.Renewed, l.RoundTrip = e.m.at(h.renewed), time.Duration(h.roundTrip)*time.Microsecond
		}
	}
	return l, l.State != ""
}

// leasesLocked counts the leases that are held, with their earliest deadline, and returns the oldest; nil if there is
// none.
func (e *entry) leasesLocked(count *LocalLock) (oldest *Lease) {
	now := time.Now()
	for _, h := range e.holdsLocked() {
		for l := h.leases; l != nil; l = l.next {
			deadline := l.deadlineLocked()
			if l.err != nil || !validity.Valid(now, deadline) {
				continue
			}
			count.Leases++
			if count.Deadline.IsZero() || deadline.Before(count.Deadline) {
				count.Deadline = deadline
			}
			if oldest == nil || l.since <= oldest.since { // the list begins with the youngest
				oldest = l
			}
		}
	}
	return oldest
}

// ages adds for how long the oldest lease and the oldest waiter have been here.
func (e *entry) ages(g telemetry.Gauges) {
	e.mu.Lock()
	defer e.mu.Unlock()
	now := time.Since(e.m.epoch)
	if w := e.waiters.Front(); w != nil {
		g.WaitingOldest.Saw(w.Value.h.class.label(), (now - w.Value.came).Seconds())
	}
	var count LocalLock
	if l := e.leasesLocked(&count); l != nil {
		g.HeldOldest.Saw(l.class.label(), (now - l.since).Seconds())
	}
}

// at is the time d after the manager's epoch.
func (m *Manager) at(d time.Duration) time.Time { return m.epoch.Add(d) }

// public is the kind as users see it.
func (k kind) public() Kind {
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
	for _, e := range m.snapshot() {
		e.mu.Lock()
		e.tellWaitsLocked()
		e.mu.Unlock()
	}
	var all []Contention
	for _, c := range m.contended.Top(n, m.minute(time.Now())) {
		all = append(all, Contention{c.Name, c.Events, c.Excess})
	}
	return all
}

// minute numbers the minutes since the manager was made.
func (m *Manager) minute(now time.Time) uint32 { return uint32(now.Sub(m.epoch) / time.Minute) }

// waitedLocked is called when the wait of w ends, in whose way another owner stood. A caller that asks once does not wait for it.
func (e *entry) waitedLocked(w *waiter, now time.Time) {
	if w.Value.once {
		return
	}
	if minute := e.m.minute(now); minute != e.minute {
		e.tellWaitsLocked()
		e.minute = minute
	}
	e.waits++
}

// tellWaitsLocked adds the waits to those of all locks. That is done once per minute, and when the entry is forgotten:
// callers that take turns only count.
func (e *entry) tellWaitsLocked() {
	if e.waits > 0 {
		e.m.contended.Add(e.name, int(e.waits), e.minute)
		e.waits = 0
	}
}

// WithLabel returns a copy of ctx that says what its caller does, such as "checkout". The locks that are
// waited for and taken under it have that label in [Manager.Locks], and nowhere else. Use few labels,
// and no secrets. WithLabel panics with an *[OptionError] if ctx is nil.
func WithLabel(ctx context.Context, label string) context.Context {
	if ctx == nil {
		panic(missing("WithLabel", "context"))
	}
	return context.WithValue(ctx, labelKey{}, &label)
}

type labelKey struct{}

// labelOf returns the label that ctx carries; nil: none. No lock may be held: ctx may be code of the user.
func labelOf(ctx context.Context) *string {
	label, _ := ctx.Value(labelKey{}).(*string)
	return label
}

func textOf(label *string) string {
	if label == nil {
		return ""
	}
	return *label
}
