package sim

import (
	"time"
)

// Plan is a world before it is run, as a plain value: who does what and when, and what goes wrong. A seed draws one.
type Plan struct {
	Seed      uint64 // chance that is not in the plan, such as how long a packet takes
	Shape     Shape
	Servers   int
	Length    time.Duration // no section begins later
	Latency   time.Duration // what a packet takes at most, but for spikes
	Spikes    bool          // one packet in thirty takes up to twenty times as long
	Drift     float64       // of the servers' clocks, in parts of one
	Options   Options
	Locks     []Lock
	Processes []Process
	Faults    []Fault
}

// Shape is how the servers are arranged, and who uses them.
type Shape string

// The shapes.
const (
	OneServer    Shape = "one-server"
	Majority     Shape = "majority"   // Redlocks over all servers
	WithReplicas Shape = "replicas"   // grants wait for replicas
	FailOver     Shape = "fail-over"  // a copy that is behind takes over
	Crowd        Shape = "crowd"      // many locks at a time, for which requests are merged
	Elections    Shape = "elections"  // candidates and observers
	Semaphores   Shape = "semaphores" // semaphores
)

// Shapes are those that seeds have.
var Shapes = []Shape{OneServer, Majority, WithReplicas, FailOver}

// Options are those of the processes' managers.
type Options struct {
	Lease    time.Duration
	Poll     time.Duration
	Patience time.Duration
	Slice    time.Duration
	Replicas int
	AckIn    time.Duration
}

// Kind is a kind of lock.
type Kind string

// The kinds.
const (
	Mutex   Kind = "mutex"
	Fair    Kind = "fair"
	RW      Kind = "rw"
	Multi   Kind = "multi"
	Redlock Kind = "redlock"

	Semaphore Kind = "semaphore"
)

// Lock is one handle that each process has. Several may be of one name, with other options.
type Lock struct {
	Name    string
	Kind    Kind
	Member  Kind          // Redlock: the kind of its members
	Lease   time.Duration // 0: that of the manager
	Fencing bool
	Fixed   bool
	MaxHold time.Duration
	AtLeast time.Duration
	Linger  time.Duration
	Wanted  bool
	Value   string
	Seat    bool  // workers campaign for it
	Of      []int // Multi: its locks
	Permits int   // Semaphore: how many are taken at a time
}

// How many permits a semaphore has, and how many a worker takes at most.
const (
	allPermits  = 3
	mostPermits = 2
)

// Process is a client process, with a Manager for each server.
type Process struct {
	Start   time.Duration
	Workers []Worker
}

// Worker is a goroutine that makes one section after the other.
type Worker struct{ Steps []Step }

// Way is how a lock is asked for, or another call of the API.
type Way string

// The ways.
const (
	ByLock    Way = "lock"
	ByTry     Way = "try"
	ByAsync   Way = "async"
	ByInspect Way = "inspect"
	ByForce   Way = "force"
	ByForceOf Way = "force of"
	ByLocks   Way = "locks"

	ByCampaign Way = "campaign"
	ByAttach   Way = "attach" // a ticket of another section
)

// Step is one section: a pause, a call, what is done under the lease, and its end.
type Step struct {
	After  time.Duration
	Lock   int
	Way    Way
	Read   bool          // the read side
	Limit  time.Duration // of the context; 0: none
	Cancel bool          // the context ends by a cancel, not by a deadline
	Hold   time.Duration
	Over   bool // it goes on when its lease has ended
	Heeds  bool // it ends early when another owner wants the lock
	Inside []Inner
	End    End
	Ticket time.Duration // of HandOver: for how long
}

// Inner is what is done under a lease.
type Inner string

// What is done under a lease.
const (
	Reenter   Inner = "re-enter"
	Downgrade Inner = "downgrade"
	Extend    Inner = "extend"
	Upgrade   Inner = "upgrade"
	Afresh    Inner = "afresh"
	Proclaim  Inner = "proclaim"
)

// End is how a section ends.
type End string

// The ends; the zero value is a call of Unlock.
const (
	Never    End = "never"     // the lease is kept until Close
	HandOver End = "hand over" // Detach
)

// Fault is what goes wrong.
type Fault struct {
	At      time.Duration
	Kind    string
	For     time.Duration
	Process int
	Server  int
	Lock    int
	Script  string // what the names of the scripts begin with that it is about
	Which   int    // of several connections
}
