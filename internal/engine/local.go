package engine

import (
	"context"
	"time"

	"github.com/holdfast-go/holdfast/internal/busiest"
	"github.com/holdfast-go/holdfast/internal/telemetry"
	"github.com/holdfast-go/holdfast/internal/validity"
)

// Local is what the process does with a lock: LocalLock of the root package, where the fields are explained.
type Local struct {
	Name         string
	Kind         Kind
	State        string // of LocalState; empty: nothing
	Since        time.Time
	Label        string
	Deadline     time.Time
	Leases       int
	WaitMode     string
	Token        uint64
	Renewed      time.Time
	RoundTrip    time.Duration
	Waiters      int
	WaitingSince time.Time
	WaiterLabel  string
}

// Locals returns what the process does with its locks, one by one; it stops if yield returns false.
func (eng *Engine) Locals(yield func(Local) bool) {
	for _, e := range eng.snapshot() {
		if l := e.local(); l.State != "" && !yield(l) {
			return
		}
	}
}

// local returns what the process does with the lock.
func (e *entry) local() Local {
	e.mu.Lock()
	defer e.mu.Unlock()
	l := Local{Name: e.name, Kind: e.kind}
	if w := e.waiters.Front(); w != nil {
		l.Waiters, l.WaitingSince, l.WaiterLabel = e.waiters.Len(), e.engine.at(w.Value.came), textOf(w.Value.label)
		l.Name, l.Kind, l.State, l.Since, l.Label = w.Value.h.Name, w.Value.h.Kind, "waiting", l.WaitingSince, l.WaiterLabel
	} else if e.releasing+e.leftBehind() > 0 {
		l.State, l.Since = "releasing", e.engine.at(e.known.since)
	}
	if first := e.leasesLocked(&l); first != nil {
		h := first.hold
		l.Name, l.Kind, l.State = first.name, h.kind, "held"
		l.Since, l.Label, l.WaitMode, l.Token = e.engine.at(first.since), textOf(first.few().label), first.how.String(), first.token
		l.Renewed, l.RoundTrip = time.Time{}, 0
		if h.renewed != 0 {
			l.Renewed, l.RoundTrip = e.engine.at(h.renewed), time.Duration(h.roundTrip)*time.Microsecond
		}
	}
	return l
}

// leasesLocked counts the leases that are held, with their earliest deadline, and returns the oldest; nil if there is
// none.
func (e *entry) leasesLocked(count *Local) (oldest *Lease) {
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
	now := time.Since(e.engine.Epoch)
	if w := e.waiters.Front(); w != nil {
		g.WaitingOldest.Saw(w.Value.h.Class.Label(), (now - w.Value.came).Seconds())
	}
	var count Local
	if l := e.leasesLocked(&count); l != nil {
		g.HeldOldest.Saw(l.class.Label(), (now - l.since).Seconds())
	}
}

// at is the time d after the manager's epoch.
func (eng *Engine) at(d time.Duration) time.Time { return eng.Epoch.Add(d) }

// ContendedNames returns the n names that callers have waited for most often.
func (eng *Engine) ContendedNames(n int) []busiest.Count {
	for _, e := range eng.snapshot() {
		e.mu.Lock()
		e.tellWaitsLocked()
		e.mu.Unlock()
	}
	return eng.contended.Top(n, minute(time.Since(eng.Epoch)))
}

// minute numbers the minutes after Engine.Epoch.
func minute(at time.Duration) uint32 { return uint32(at / time.Minute) }

// waitedLocked is called when the wait of w ends, at that time after Engine.Epoch. Another owner stood in its way. A caller
// that asks once does not wait for it.
func (e *entry) waitedLocked(w *waiter, at time.Duration) {
	if w.Value.once {
		return
	}
	if minute := minute(at); minute != e.minute {
		e.tellWaitsLocked()
		e.minute = minute
	}
	e.waits++
}

// waitedInVainLocked is waitedLocked for a caller that leaves. Whether the lock was busy is known by then, or was when it came:
// else Redis was silent, and no owner stood in the way.
func (e *entry) waitedInVainLocked(m *moment, w *waiter, busy bool) {
	if busy || w.Value.stood {
		e.waitedLocked(w, m.age())
	}
}

// tellWaitsLocked adds the waits to those of all locks. That is done once per minute, and when the entry is forgotten:
// callers that take turns only count.
func (e *entry) tellWaitsLocked() {
	if e.waits > 0 {
		e.engine.contended.Add(e.name, int(e.waits), e.minute)
		e.waits = 0
	}
}

// WithLabel returns a copy of ctx with a label.
func WithLabel(ctx context.Context, label string) context.Context {
	return &labelContext{ctx, label}
}

// labelContext is what WithLabel returns.
type labelContext struct {
	context.Context
	label string
}

func (c *labelContext) Value(key any) any {
	switch key.(type) {
	case carriesKey, labelKey:
		return &c.label
	}
	return c.Context.Value(key)
}

// labelKey asks a context for its label.
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
