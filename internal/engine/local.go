package engine

import (
	"cmp"
	"context"
	"slices"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/internal/busiest"
	"github.com/holdfast-go/holdfast/internal/lock"
	"github.com/holdfast-go/holdfast/internal/telemetry"
	"github.com/holdfast-go/holdfast/internal/wire"
)

// Local is what the process does with a lock: LocalLock of the root package, where the fields are explained.
type Local struct {
	Name         string
	Kind         lock.Kind
	State        string // of LocalState; empty: nothing
	Since        time.Time
	Label        string
	Deadline     time.Time
	Leases       int
	Permits      int
	WaitMode     string
	Token        uint64
	Renewed      time.Time
	RoundTrip    time.Duration
	Waiters      int
	WaitingSince time.Time
	WaiterLabel  string
	WaiterHolds  []string
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
	l, under := e.localLocked()
	e.mu.Unlock()
	l.WaiterHolds = carriedBy(under)
	return l
}

// localLocked is local without WaiterHolds. The waiter's context, which may be code of the user, says that; nil: it holds nothing.
func (e *entry) localLocked() (l Local, under context.Context) {
	l = Local{Name: e.name(), Kind: e.lock.Family}
	since, releasing := e.lock.Releasing()
	if first := e.lock.First(); first != nil {
		w := first.Shell.(*waiter)
		under = w.under
		l.Waiters, l.WaitingSince, l.WaiterLabel = e.lock.Waiting(), e.engine.at(w.Came), textOf(w.label)
		l.Name, l.Kind, l.State, l.Since, l.Label = w.Name, w.Kind, "waiting", l.WaitingSince, l.WaiterLabel
	} else if releasing {
		l.State, l.Since = "releasing", e.engine.at(since)
	}
	if first := e.leasesLocked(&l); first != nil {
		h := first.Hold()
		l.Name, l.Kind, l.State = first.Name(), h.Kind, "held"
		l.Since, l.Label, l.WaitMode, l.Token = e.engine.at(first.Since()), textOf((*Lease)(first).labelLocked()), first.Mode().String(), first.Token()
		l.Renewed, l.RoundTrip = time.Time{}, 0
		if at, trip := h.Renewed(); at != 0 {
			l.Renewed, l.RoundTrip = e.engine.at(at), trip
		}
	}
	if h := e.lock.Lingering(); h != nil && l.State == "" {
		l.Kind, l.State, l.Since, l.Deadline = h.Kind, "idle", e.engine.at(h.Lingers), h.Deadline
	}
	return l, under
}

// longWaits returns for which locks callers of the process have waited for long, the longest waits first.
func (eng *Engine) longWaits() (all []wire.Waits) {
	for _, e := range eng.snapshot() {
		e.mu.Lock()
		if w := e.lock.First(); w != nil {
			if since := eng.at(w.Came); time.Since(since) >= longWait {
				all = append(all, wire.Waits{Name: e.mapped(), Callers: e.lock.Waiting(), Since: since})
			}
		}
		e.mu.Unlock()
	}
	slices.SortFunc(all, func(a, b wire.Waits) int { return cmp.Or(a.Since.Compare(b.Since), cmp.Compare(a.Name, b.Name)) })
	return all
}

// leasesLocked counts the leases that are held, with their earliest deadline, and returns the oldest; nil if there is
// none.
func (e *entry) leasesLocked(count *Local) (oldest *lock.Lease) {
	now := time.Now()
	for _, h := range e.lock.Holds() {
		for l := h.Leases(); l != nil; l = l.Next() {
			deadline := l.Deadline()
			if !l.Valid(now) {
				continue
			}
			count.Leases++
			count.Permits += h.Terms.Permits
			if count.Deadline.IsZero() || deadline.Before(count.Deadline) {
				count.Deadline = deadline
			}
			if oldest == nil || l.Since() <= oldest.Since() { // the list begins with the youngest
				oldest = l
			}
		}
	}
	return oldest
}

// gauge adds for how long the oldest lease and the oldest waiter have been here, and the permits.
func (e *entry) gauge(g telemetry.Gauges) {
	e.mu.Lock()
	defer e.mu.Unlock()
	now := time.Since(e.engine.Epoch)
	if w := e.lock.First(); w != nil {
		g.WaitingOldest.Saw(w.Class.(*class).Label(), (now - w.Came).Seconds())
	}
	var count Local
	if l := e.leasesLocked(&count); l != nil {
		g.HeldOldest.Saw((*Lease)(l).Class(), (now - l.Since()).Seconds())
		if count.Permits > 0 {
			g.Permits[(*Lease)(l).Class()] += int64(count.Permits)
		}
	}
}

// at is the time d after the manager's epoch.
func (eng *Engine) at(d time.Duration) time.Time { return eng.Epoch.Add(d) }

// ContendedNames returns the n names that callers have waited for most often.
func (eng *Engine) ContendedNames(n int) []busiest.Count {
	for _, e := range eng.snapshot() {
		e.mu.Lock()
		if e.runs != nil {
			e.tellWaitsLocked()
		}
		e.mu.Unlock()
	}
	return eng.contended.Top(n, minute(time.Since(eng.Epoch)))
}

// minute numbers the minutes after Engine.Epoch.
func minute(at time.Duration) uint32 { return uint32(at / time.Minute) }

// WaitBounds are the durations by which Waits counts: what is below each, and at last what is longer.
var WaitBounds = [...]time.Duration{time.Millisecond, 10 * time.Millisecond, 100 * time.Millisecond, time.Second, 10 * time.Second, time.Minute}

// Waits counts waits that have ended, by their duration.
type Waits [len(WaitBounds) + 1]uint64

// Add adds those of another manager.
func (w *Waits) Add(other Waits) {
	for i, n := range other {
		w[i] += n
	}
}

// Waits counts the waits of callers in whose way another owner stood: those of ContendedNames.
func (eng *Engine) Waits() (w Waits) {
	for i := range w {
		w[i] = eng.waits[i].Load()
	}
	return w
}

// waitedLocked is called when the wait of a caller ends in whose way another owner stood, from and to those times after Engine.Epoch.
func (e *entry) waitedLocked(came, at time.Duration) {
	r := e.run()
	if minute := minute(at); minute != r.minute {
		e.tellWaitsLocked()
		r.minute = minute
	}
	i := 0
	for i < len(WaitBounds) && at-came >= WaitBounds[i] {
		i++
	}
	r.waits[i]++
}

// tellWaitsLocked adds the waits to those of all locks. That is done once per minute, and when the entry is forgotten:
// callers that take turns only count.
func (e *entry) tellWaitsLocked() {
	r, all := e.runs, 0
	for i, n := range r.waits {
		if all += int(n); n > 0 {
			e.engine.waits[i].Add(uint64(n))
		}
	}
	if all > 0 {
		e.engine.contended.Add(e.name(), all, r.minute)
		r.waits = [len(r.waits)]uint32{}
	}
}

// mostLabel bounds a label, in bytes: pages list many.
const mostLabel = 1 << 10

// WithLabel returns a copy of ctx with a label.
func WithLabel(ctx context.Context, label string) context.Context {
	return &labelContext{ctx, label[:min(len(label), mostLabel)]}
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

// coarseness is how far a coarse clock may be behind: less than a person sees.
const coarseness = time.Millisecond

// coarseClock is a clock for times that people read. To read a real one took 6 % of a local hand-off. It is behind by
// coarseness at most, and by as long as the process stood still.
type coarseClock struct {
	latest atomic.Int64 // the latest reading, in nanoseconds after Engine.Epoch; 0: it is older than coarseness
}

// coarseNow returns how long after Epoch it is.
func (eng *Engine) coarseNow() time.Duration {
	if at := eng.coarse.latest.Load(); at != 0 {
		return time.Duration(at)
	}
	now := time.Since(eng.Epoch)
	if eng.coarse.latest.CompareAndSwap(0, int64(now)) {
		time.AfterFunc(coarseness, func() { eng.coarse.latest.Store(0) }) // no one waits for it: it ends by itself
	}
	return now
}
