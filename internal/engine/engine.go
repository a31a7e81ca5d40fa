// Package engine is what a Manager does: the locks of a process by their names, and all that runs for them. A
// Verdict says what became of a call, and Config.ErrorOf makes the error of it.
package engine

import (
	"context"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/internal/busiest"
	"github.com/holdfast-go/holdfast/internal/command"
	"github.com/holdfast-go/holdfast/internal/journal"
	"github.com/holdfast-go/holdfast/internal/parking"
	"github.com/holdfast-go/holdfast/internal/pubsub"
	"github.com/holdfast-go/holdfast/internal/renewal"
	"github.com/holdfast-go/holdfast/internal/telemetry"
	"github.com/holdfast-go/holdfast/internal/validity"
	"github.com/holdfast-go/holdfast/internal/wire"
)

// Engine is what a manager does: the locks of a process by their names, and what all of them share.
type Engine struct {
	Epoch     time.Time // just before it was made
	coarse    coarseClock
	owners    string // what all its owner ids begin with
	errorOf   func(name string, v *Verdict) error
	poll      time.Duration
	slice     time.Duration
	readSlice time.Duration // how often the readers of the process ask whether a writer waits elsewhere
	cluster   bool          // keys of one script must share a slot
	Publish   any           // the command that announces a release, boxed; see tell in prelude/redisson.lua
	counted   string        // "1" if PUBSUB NUMSUB knows whether an inbox has listeners, else "0"
	patience  time.Duration // for how long a silent waiter keeps its place
	confirm   bool          // tests: no grant is trusted without asking
	aside     time.Duration // see aside.go; tests change it

	Readmission time.Duration // see trouble.go; tests change it

	// Chance draws a number from 0 to below n, for any goroutine. The simulation changes it, before the first lock.
	Chance func(n int64) int64

	Executor   *command.Executor
	scheduler  *renewal.Scheduler[*hold]
	Subscriber *pubsub.Subscriber
	inbox      *inbox
	Identity   *identity // nil: none
	Classes    classes
	Telemetry  *telemetry.Telemetry
	tokens     tokenMarks
	holds      atomic.Uint64 // numbers the owner ids
	oneSlot    atomic.Bool   // found out: keys of one script must share a slot
	warm       sync.Once     // the first hold to be renewed sees to spare connections
	ready      sync.Pool     // see newReady
	parked     sync.Pool     // see newWaiter
	life       context.Context
	endLife    context.CancelFunc // by Close
	Stats      counters
	contended  busiest.Names // what callers wait for; but see entry.waits
	Journal    *journal.Journal

	mu      sync.Mutex // guards the following; a leaf in the lock order
	entries [families]registry
	pending int                   // requests and releases that Close waits for
	paused  map[*release]struct{} // which wait before they are sent again
	closed  bool
	empty   bool          // drained is closed
	denied  error         // of a release that was given up since closed was set; nil: none was
	trouble error         // why the latest request of a release brought no answer since then; nil: each has
	drained chan struct{} // closed when closed and nothing is pending
	stopped chan struct{} // closed when Close has stopped everything
	stopErr error         // the result of Close; set before stopped is closed
}

// Config is what an engine is made of.
type Config struct {
	Executor   *command.Executor
	Journal    *journal.Journal
	Subscriber func(lost func()) *pubsub.Subscriber // makes it; lost is called when a connection is

	// ErrorOf makes the error of a verdict, which is not nil, for a caller that has given the lock this name. It may be called
	// with locks held.
	ErrorOf func(name string, v *Verdict) error

	Cluster   bool // keys of one script must share a slot
	Sharded   bool // releases are announced with SPUBLISH
	Poll      time.Duration
	Slice     time.Duration
	ReadSlice time.Duration
	Patience  time.Duration

	Confirm     bool                // tests: no grant is trusted without asking
	Aside       time.Duration       // see aside.go
	Readmission time.Duration       // see trouble.go
	MetricName  func(string) string // the class of a name; nil: there is one class
	App         string              // what the identity is a part of; empty: there is none
	Page        string              // the address of the process's debug page, for the identity; empty: none
}

// New returns an engine, which starts nothing before its first lock.
func New(c Config) *Engine {
	eng := &Engine{
		Epoch:       time.Now().Add(-1), // no time after it is 0, which has a meaning of its own
		owners:      wire.NewOwnerPrefix(),
		errorOf:     c.ErrorOf,
		poll:        c.Poll,
		slice:       c.Slice,
		readSlice:   c.ReadSlice,
		cluster:     c.Cluster,
		Publish:     "publish",
		counted:     "1",
		patience:    c.Patience,
		confirm:     c.Confirm,
		aside:       c.Aside,
		Readmission: c.Readmission,
		Chance:      rand.Int64N,
		Executor:    c.Executor,
		entries:     [families]registry{{}, {}, {}},
		Journal:     c.Journal,
		drained:     make(chan struct{}),
		stopped:     make(chan struct{}),
	}
	eng.life, eng.endLife = context.WithCancel(context.Background())
	eng.scheduler = renewal.New(renewal.Config[*hold]{Renew: eng.renew, Expire: eng.expire})
	if eng.cluster {
		eng.counted = "0" // a node knows only its own listeners
	}
	if c.Sharded {
		eng.Publish = "spublish"
	}
	eng.Subscriber = c.Subscriber(eng.disconnected)
	eng.Executor.OnClosed(eng.clientClosed)
	eng.Executor.OnReadOnly(eng.Subscriber.Moved)
	eng.Executor.OnStranded(func() { eng.Subscriber.Doubt(eng.Executor.RoundTrip()) })
	eng.Executor.OnOutage(eng.unavailable, eng.Journal.AvailableAgain)
	eng.inbox = newInbox(eng)
	eng.Identity = newIdentity(eng, c.App, c.Page)
	eng.Classes.of = c.MetricName
	return eng
}

// explain makes the error of v for a caller that has given the lock this name; nil if all is well.
func (eng *Engine) explain(name string, v *Verdict) error {
	if v == nil {
		return nil
	}
	return eng.errorOf(name, v)
}

// ErrorOf makes the error of a fact for a caller that has given the lock, or the locks, this name.
func (eng *Engine) ErrorOf(name string, f Fact, causes ...error) error {
	return eng.explain(name, because(f, causes...))
}

// unavailable is called when requests bring no answer any more.
func (eng *Engine) unavailable(cause error) {
	eng.Stats.Outages.Add(1)
	eng.Journal.Unavailable(cause)
}

// registry has the entries of a family by name, after the name mapper. A mutex, a fair
// lock and a read-write lock of one name have an entry each: what they do to each other in
// Redis, they would do between processes as well.
type registry map[string]*entry

// entry returns the entry of a lock, a new one if there is none.
func (eng *Engine) entry(n *named) (*entry, *Verdict) {
	eng.mu.Lock()
	e, over := eng.entries[n.family][n.Mapped], eng.closed
	if e == nil && !over {
		e = &entry{engine: eng, keys: n.wireKeys(), name: n.Name, kind: n.family}
		if n.family == FairKind {
			e.places = new(places)
		}
		eng.entries[n.family][n.Mapped] = e
	}
	eng.mu.Unlock()
	if over {
		return nil, because(Closed)
	}
	n.entry.Store(e)
	eng.Identity.begin()
	return e, nil
}

// existing returns the entry of a lock; nil if there is none.
func (eng *Engine) existing(family Kind, mapped string) *entry {
	eng.mu.Lock()
	defer eng.mu.Unlock()
	return eng.entries[family][mapped]
}

// disconnected is called by the subscriber.
func (eng *Engine) disconnected() {
	eng.Stats.Reconnects.Add(1)
	eng.Telemetry.Disconnected()
}

// newWaiter returns a waiter for a caller that waits, and calls release in the end.
func (eng *Engine) newWaiter() *waiter {
	if w, ok := eng.parked.Get().(*waiter); ok {
		return w
	}
	return parking.New[request, outcome]()
}

// release returns the outcome of w, and keeps w for another caller. Its own caller has received from Ready, or w has left
// the queue: no other goroutine knows it then.
func (eng *Engine) release(w *waiter) outcome {
	told := w.Take()
	w.Value = request{}
	eng.parked.Put(w)
	return told
}

// newReady returns a channel that gets one value, when the answer to an Unlock is there. The caller puts it back into
// eng.ready when it has received from it.
func (eng *Engine) newReady() chan struct{} {
	if c, ok := eng.ready.Get().(chan struct{}); ok {
		return c
	}
	return make(chan struct{}, 1)
}

// forget drops a dead entry. A later caller makes a new one.
func (eng *Engine) forget(e *entry) {
	eng.mu.Lock()
	if r := eng.entries[e.kind]; r[e.mapped()] == e {
		delete(r, e.mapped())
	}
	eng.mu.Unlock()
}

// begin and end count what Close waits for.
func (eng *Engine) begin() {
	eng.mu.Lock()
	eng.pending++
	eng.mu.Unlock()
}

func (eng *Engine) end() {
	eng.mu.Lock()
	eng.pending--
	if eng.closed && eng.pending == 0 && !eng.empty {
		eng.empty = true // an Unlock after Close can begin something again
		close(eng.drained)
	}
	eng.mu.Unlock()
}

// Pending is how many requests and releases are under way.
func (eng *Engine) Pending() int {
	eng.mu.Lock()
	defer eng.mu.Unlock()
	return eng.pending
}

// pausing and resumed record that a release pauses before it is sent again, and does not any more.
func (eng *Engine) pausing(r *release) {
	eng.mu.Lock()
	if eng.paused == nil {
		eng.paused = make(map[*release]struct{})
	}
	eng.paused[r] = struct{}{}
	eng.mu.Unlock()
}

func (eng *Engine) resumed(r *release) {
	eng.mu.Lock()
	delete(eng.paused, r)
	eng.mu.Unlock()
}

// closing reports whether Close has been called.
func (eng *Engine) closing() bool {
	eng.mu.Lock()
	defer eng.mu.Unlock()
	return eng.closed
}

// hasten has the releases that pause sent at once: Close waits for them.
func (eng *Engine) hasten() {
	eng.mu.Lock()
	paused := slices.Collect(maps.Keys(eng.paused))
	eng.mu.Unlock()
	for _, r := range paused {
		r.entry.mu.Lock()
		r.hastenLocked()
		r.entry.mu.Unlock()
	}
}

// gaveUp records why a release has ended that Redis has not confirmed.
func (eng *Engine) gaveUp(err error) {
	eng.mu.Lock()
	if eng.closed {
		eng.denied = err
	}
	eng.mu.Unlock()
}

// troubled records why a request of a release has brought no answer.
func (eng *Engine) troubled(cause error) {
	eng.mu.Lock()
	if eng.closed {
		eng.trouble = cause
	}
	eng.mu.Unlock()
}

// clientClosed is called when the client turns out to be closed. No caller can get a lock any more, except by
// re-entry. Holds end with their deadlines.
func (eng *Engine) clientClosed() {
	eng.mu.Lock()
	entries := eng.entriesLocked()
	eng.mu.Unlock()
	for _, e := range entries {
		e.mu.Lock()
		e.failLocked(Unavailable, command.ErrClientClosed)
		e.stepLocked()
		e.mu.Unlock()
	}
}

// patienceFor is how long Redis has to answer a request for a lock of this TTL.
func (eng *Engine) patienceFor(ttl time.Duration) time.Duration {
	return validity.Patience(ttl, eng.Executor.RoundTrip())
}

// askPatience is how long Redis has to answer what no caller's Lock or Unlock waits for: questions,
// renewals, the keeping of places. Close waits as long.
func (eng *Engine) askPatience() time.Duration { return validity.AskPatience(eng.Executor.RoundTrip()) }

// counters are what is counted where it happens: see Stats of a manager.
type counters struct {
	Granted, Released, Lost             atomic.Uint64
	Outages                             atomic.Uint64
	Troubles, Renewals, RenewalFailures atomic.Uint64
	Wakeups, Polls, Reconnects          atomic.Uint64
}

// Counts returns how many names are in use, how many callers wait, and how many holds there are.
func (eng *Engine) Counts() (locks, waiting, held int) {
	for _, e := range eng.snapshot() {
		e.mu.Lock()
		locks++
		waiting += e.waiters.Len()
		held += len(e.holdsLocked())
		e.mu.Unlock()
	}
	return locks, waiting, held
}

// Ages adds for how long the oldest leases and waiters have been here.
func (eng *Engine) Ages(g telemetry.Gauges) {
	for _, e := range eng.snapshot() {
		e.ages(g)
	}
}

// snapshot returns the entries of now.
func (eng *Engine) snapshot() []*entry {
	eng.mu.Lock()
	defer eng.mu.Unlock()
	return eng.entriesLocked()
}

func (eng *Engine) entriesLocked() (all []*entry) {
	for _, r := range eng.entries {
		all = slices.AppendSeq(all, maps.Values(r))
	}
	return all
}

// CheckHolds asks Redis whether what the process holds by a key is still there.
func (eng *Engine) CheckHolds(mapped string) {
	for k := range families {
		if e := eng.existing(k, mapped); e != nil {
			e.checkNow()
		}
	}
}
