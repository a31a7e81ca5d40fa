// Package engine is what a Manager does: the locks of a process by their names, and all that runs for them. A
// Verdict says what became of a call, and Config.ErrorOf makes the error of it.
package engine

import (
	"context"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/internal/busiest"
	"github.com/holdfast-go/holdfast/internal/command"
	"github.com/holdfast-go/holdfast/internal/journal"
	"github.com/holdfast-go/holdfast/internal/lock"
	"github.com/holdfast-go/holdfast/internal/protocol"
	"github.com/holdfast-go/holdfast/internal/pubsub"
	"github.com/holdfast-go/holdfast/internal/renewal"
	"github.com/holdfast-go/holdfast/internal/telemetry"
	"github.com/holdfast-go/holdfast/internal/validity"
	"github.com/holdfast-go/holdfast/internal/wire"
)

// Engine is what a manager does: the locks of a process by their names, and what all of them share.
type Engine struct {
	lock.Settings // what all its locks go by. Not changed, but for Chance: by the simulation, before the first lock

	coarse  coarseClock
	errorOf func(name string, v *lock.Verdict) error
	cluster bool             // keys of one script must share a slot
	Process protocol.Process // what all its requests have in common

	Executor   *command.Executor
	scheduler  *renewal.Scheduler[*lock.Hold]
	Subscriber *pubsub.Subscriber
	inbox      *inbox
	lingering  lingering
	Identity   *identity // nil: none
	Classes    classes
	Telemetry  *telemetry.Telemetry
	tokens     tokenMarks
	holds      atomic.Uint64 // numbers the owner ids
	oneSlot    atomic.Bool   // found out: keys of one script must share a slot
	warm       sync.Once     // the first hold to be renewed sees to spare connections
	world      world
	ready      sync.Pool // see newReady
	parked     sync.Pool // see newWaiter
	recent     recent
	life       context.Context
	endLife    context.CancelFunc // by Close
	Stats      counters
	contended  busiest.Names               // what callers wait for; but see running.waits
	waits      [len(Waits{})]atomic.Uint64 // how long they have waited; likewise
	Journal    *journal.Journal

	mu      sync.Mutex // guards the following; a leaf in the lock order
	entries [lock.Families]registry
	pending int                            // requests and releases that Close waits for
	paused  map[*lock.Repeated]*time.Timer // releases that wait before they are sent again
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
	Subscriber func(lost func(unheard bool)) *pubsub.Subscriber // makes it; lost is called when a connection is

	// ErrorOf makes the error of a verdict, which is not nil, for a caller that has given the lock this name. It may be called
	// with locks held.
	ErrorOf func(name string, v *lock.Verdict) error

	lock.Settings // without those that New sets: the clock, chance, and what the scripts and the executor go by

	Cluster    bool                // keys of one script must share a slot
	Sharded    bool                // releases are announced with SPUBLISH
	MetricName func(string) string // the class of a name; nil: there is one class
	App        string              // what the identity is a part of; empty: there is none
	Page       string              // the address of the process's debug page, for the identity; empty: none
}

// New returns an engine, which starts nothing before its first lock.
func New(c Config) *Engine {
	eng := &Engine{
		Settings: c.Settings,
		errorOf:  c.ErrorOf,
		cluster:  c.Cluster,
		Process:  protocol.Process{Owners: wire.NewOwnerPrefix(), Publish: "publish", Counted: true, Patience: c.Patience},
		Executor: c.Executor,
		entries:  [lock.Families]registry{{}, {}, {}, {}},
		Journal:  c.Journal,
		drained:  make(chan struct{}),
		stopped:  make(chan struct{}),
	}
	eng.Epoch = time.Now().Add(-1) // no time after it is 0, which has a meaning of its own
	eng.Now, eng.Chance = time.Now, rand.Int64N
	eng.Turns, eng.FirstAtMost, eng.Unanswered = protocol.TurnsInARow, command.FirstAtMost, command.ErrSilent
	eng.inbox = newInbox(eng)
	eng.world = world{eng, eng.inbox, &eng.tokens}
	eng.Process.Knows = &eng.world
	eng.life, eng.endLife = context.WithCancel(context.Background())
	eng.scheduler = renewal.New(eng.renew, eng.expire)
	if eng.cluster {
		eng.Process.Counted = false // a node knows only its own listeners
	}
	if c.Sharded {
		eng.Process.Publish = "spublish"
	}
	eng.Subscriber = c.Subscriber(eng.disconnected)
	eng.Executor.Events = command.Events{
		Closed:   eng.clientClosed,
		ReadOnly: eng.Subscriber.Moved,
		Stranded: func() { eng.Subscriber.Doubt(eng.Executor.RoundTrip()) },
		Outage:   eng.unavailable,
		Answers:  eng.Journal.AvailableAgain,
	}
	eng.Identity = newIdentity(eng, c.App, c.Page)
	eng.Classes.of = c.MetricName
	return eng
}

// explain makes the error of v for a caller that has given the lock this name; nil if all is well.
func (eng *Engine) explain(name string, v *lock.Verdict) error {
	if v == nil {
		return nil
	}
	return eng.errorOf(name, v)
}

// unavailable is called when requests bring no answer any more.
func (eng *Engine) unavailable(cause error) {
	eng.Stats.Outages.Add(1)
	eng.Journal.Unavailable(cause)
}

// disconnected is called by the subscriber.
func (eng *Engine) disconnected(unheard bool) {
	eng.Stats.Reconnects.Add(1)
	if unheard {
		eng.Stats.Unheard.Add(1)
	}
	eng.Telemetry.Disconnected(unheard)
}

// newReady returns a channel that gets one value, the answer to an Unlock. The caller puts it back into
// eng.ready when it has received from it.
func (eng *Engine) newReady() chan *lock.Verdict {
	if c, ok := eng.ready.Get().(chan *lock.Verdict); ok {
		return c
	}
	return make(chan *lock.Verdict, 1)
}

// askPatience is how long Redis has to answer what no caller's Lock or Unlock waits for: questions,
// renewals, the keeping of places. Close waits as long.
func (eng *Engine) askPatience() time.Duration { return validity.AskPatience(eng.Executor.RoundTrip()) }

// counters are what is counted where it happens: see Stats of a manager.
type counters struct {
	Granted, Released, Lost             atomic.Uint64
	Outages                             atomic.Uint64
	Troubles, Renewals, RenewalFailures atomic.Uint64
	Wakeups, Polls, Reconnects, Unheard atomic.Uint64
}
