package explore

import (
	"time"

	"github.com/holdfast-go/holdfast/internal/command"
	"github.com/holdfast-go/holdfast/internal/lock"
	"github.com/holdfast-go/holdfast/internal/protocol"
	"github.com/holdfast-go/holdfast/internal/wire"
)

// What all processes are told of times.
const (
	leases   = 3 * time.Second
	polls    = 2 * time.Second
	slice    = 10 * time.Millisecond
	patience = 6 * time.Second
)

// Plan is a small world: what there is, and what may go wrong.
type Plan struct {
	Name    string
	Locks   []Name
	Callers []Caller

	Deaf     bool          // no process hears its inbox in the beginning
	Replicas bool          // grants wait for the acknowledgement of one replica
	Closes   []int         // the processes that may close
	Ordered  bool          // callers come in their order
	Idle     time.Duration // for how long the server keeps a semaphore that is not used; 0: forever
	Sets     []int         // how many permits the first lock is said to have, one after the other (SetPermits)

	Faults []Fault // that may happen
	Most   int     // how many of them in one run
	Late   int     // how often time may pass in one run although something is on its way

	processes int
}

// Name is a lock of a plan.
type Name struct {
	Name string
	Kind lock.Kind // a family
	keys *wire.Keys

	Permits int // of a semaphore
}

// Caller is one that wants a lock, once.
type Caller struct {
	Process int
	Locks   []int     // which of the plan's; more than one: a Multi. none: the first
	Kind    lock.Kind // WriteKind and ReadKind are sides
	Once    bool      // TryLock
	Then    []Then    // what it may do while it has the lock
	Java    bool      // one of Redisson's, of no process

	MaxHold, AtLeast time.Duration
	Linger           time.Duration
	Fencing, Fixed   bool
	Permits          int // of a semaphore: how many it wants
	terms            *protocol.Terms
}

// Then is what a holder does, each once, in this order.
type Then uint8

const (
	Extends Then = iota // for three leases
	Reenters
	ReentersToRead // a writer that takes the read side as well. It gives the write side back first
)

// Fault is what may go wrong.
type Fault uint8

const (
	Leaves       Fault = iota // a caller gives up
	Fails                     // a connection ends: what is on its way there may still arrive, and is not answered
	Loses                     // a request does not arrive
	Strands                   // a connection turns out to be dead, which go-redis does not know yet
	Mute                      // a message is lost
	Cut                       // the inbox loses its connection
	Uncounted                 // the inbox's connection is at a server that is a replica now: it passes on what its master publishes, which counts no listener
	Stops                     // a process stops
	Dies                      // a process dies
	Deletes                   // another client deletes the lock; of a semaphore the number of permits that are available
	Unreplicated              // a replica does not acknowledge in time
)

// complete fills in what is left out.
func (p *Plan) complete() *Plan {
	p.processes = 0
	for i := range p.Callers {
		p.processes = max(p.processes, p.Callers[i].Process+1)
	}
	for i := range p.Locks {
		l := &p.Locks[i]
		switch l.Kind {
		case lock.WriteKind:
			l.keys = wire.NewRWKeys(l.Name)
		case lock.SemaphoreKind:
			l.keys = wire.NewSemaphoreKeys(l.Name)
		default:
			l.keys = wire.NewKeys(l.Name)
		}
	}
	says := protocol.Process{Publish: "publish", Counted: true, Patience: patience}
	for i := range p.Callers {
		c := &p.Callers[i]
		if c.Locks == nil {
			c.Locks = []int{0}
		}
		if p.Locks[c.Locks[0]].Kind == lock.SemaphoreKind {
			c.Kind, c.Permits = lock.SemaphoreKind, max(1, c.Permits)
		}
		c.terms = &protocol.Terms{}
		c.terms.Options = lock.Options{TTL: leases, MaxHold: c.MaxHold, AtLeast: c.AtLeast, Linger: c.Linger, Fencing: c.Fencing, Fixed: c.Fixed, Permits: c.Permits}
		c.terms.Idle = p.Idle
		c.terms.Total = p.Locks[c.Locks[0]].Permits
		if p.Replicas {
			c.terms.Acks = &command.Acks{Replicas: 1, Timeout: 100 * time.Millisecond}
		}
		says.Prepare(c.terms)
	}
	return p
}
