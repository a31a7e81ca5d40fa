package engine

import (
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/internal/validity"
)

// Lease is a caller's right to a lock, from the grant until Unlock or loss: of one lock, which has an entry, or of several.
// All fields are of this package, for what the root package makes of the type is what users see.
type Lease struct {
	name  string
	entry *entry // of the lock; nil: a lease of several locks
	token uint64
	since time.Duration // when it was granted, after Engine.Epoch; of several locks: guarded by their mutex until the lease is handed out
	class *class        // of the name, for metrics
	kind  Kind
	end   Fact      // of one lock: why it ended; 0: it is held. Guarded by entry.mu
	how   grantMode // of several locks: guarded by their mutex until the lease is handed out

	// The following is guarded by entry.mu, or by the mutex of several locks.

	hold     *hold                          // what it is a lease on; a downgrade makes it another
	err      error                          // why it ended; nil while held
	done     chan struct{}                  // made when first asked for
	contexts map[<-chan struct{}]*sharedEnd // by the Done of their parents
	next     *Lease                         // on the same hold
	prev     *Lease
	rare     *rare     // nil: nothing; of several locks: does not change
	release  *repeated // begun by its Unlock; nil: other leases kept the lock, or it was passed on
}

// rare is what few leases have. It is apart because each grant makes a lease, which fits 128 bytes without it.
type rare struct {
	limit *limit  // of the hold, by WithMaxHold; nil: none
	label *string // of WithLabel; nil: none
	whole *Lease  // the lease of several locks that this one is part of; nil: none
	group Several // of a lease of several locks; else nil
}

// few returns what few leases have.
func (l *Lease) few() rare {
	if l.rare == nil {
		return rare{}
	}
	return *l.rare
}

// Several is what a lease of several locks consists of, as far as it and its parts have to know.
type Several interface {
	Engine() *Engine               // of the first lock
	Guard() *sync.Mutex            // guards what changes of the lease
	Held() []*Lease                // the parts; none once the lease has ended
	PartEnded(p *Lease, err error) // is called when a part has ended, with no lock held
}

// NewSeveral makes a lease of several locks, which is held until EndLocked.
func NewSeveral(as *Lock, of Several) *Lease {
	return &Lease{name: as.Name, kind: as.Kind, class: as.Class, how: grantedReentry, rare: &rare{group: of}}
}

// grantMode is how a lease came about, for traces.
type grantMode uint8

const (
	grantedAtOnce    grantMode = iota // by the first request to Redis after the call
	grantedAfterWait                  // by a later one
	grantedByHandoff                  // by the caller before, or beside other readers, in this process
	grantedByServer                   // by Redis, with the release of another owner
	grantedReentry                    // its context carried a lease of the lock

	grantModes = iota
)

func (g grantMode) String() string {
	return [...]string{"fast", "wait", "handoff", "grant", "reentry"}[g]
}

// mu guards what changes.
func (l *Lease) mu() *sync.Mutex {
	if l.entry == nil {
		return l.rare.group.Guard()
	}
	return &l.entry.mu
}

// Name is the name of the lock as its caller has given it.
func (l *Lease) Name() string { return l.name }

// Token is the fencing token; 0: none.
func (l *Lease) Token() uint64 { return l.token }

// Kind is which lock, and which side of it, the caller has asked for.
func (l *Lease) Kind() Kind { return l.kind }

// Mode says how the lease came about.
func (l *Lease) Mode() string { return l.how.String() }

// Several is what the lease consists of if it is one of several locks, else nil.
func (l *Lease) Several() Several {
	if l.entry != nil {
		return nil
	}
	return l.few().group
}

// Made reports whether a lock has granted the lease: it is not a zero value.
func (l *Lease) Made() bool { return l.entry != nil || l.rare != nil }

// Class is the class of the name, for metrics.
func (l *Lease) Class() string { return l.class.Label() }

// Engine is the engine of the lease's lock, or of the first of several.
func (l *Lease) Engine() *Engine {
	if l.entry == nil {
		return l.rare.group.Engine()
	}
	return l.entry.engine
}

// Deadline is until when a lease of one lock is trusted.
func (l *Lease) Deadline() time.Time {
	l.mu().Lock()
	defer l.mu().Unlock()
	return l.deadlineLocked()
}

func (l *Lease) deadlineLocked() time.Time {
	if l.rare != nil && l.rare.limit != nil && l.rare.limit.at.Before(l.hold.deadline) {
		return l.rare.limit.at
	}
	return l.hold.deadline
}

// Valid reports whether a lease of one lock is held and its deadline has not come.
func (l *Lease) Valid() bool {
	l.mu().Lock()
	defer l.mu().Unlock()
	return l.err == nil && validity.Valid(time.Now(), l.deadlineLocked())
}

// Err is why the lease has ended; nil: it is held.
func (l *Lease) Err() error {
	l.mu().Lock()
	defer l.mu().Unlock()
	return l.err
}

// ErrLocked is Err of a lease of several locks, whose mutex is held.
func (l *Lease) ErrLocked() error { return l.err }

// Done is closed when the lease ends. Each call returns the same channel.
func (l *Lease) Done() <-chan struct{} {
	l.mu().Lock()
	defer l.mu().Unlock()
	if l.done == nil {
		l.done = make(chan struct{})
		if l.err != nil {
			close(l.done)
		}
	}
	return l.done
}

// stillHeld reports why the lease is not, nil if it is.
func (l *Lease) stillHeld() error {
	l.mu().Lock()
	defer l.mu().Unlock()
	if l.end == Released {
		return l.explain(because(NotHeld))
	}
	return l.err
}

// LimitedTo reports whether WithMaxHold ends the lease before d is over.
func (l *Lease) LimitedTo(d time.Duration) bool {
	l.mu().Lock()
	defer l.mu().Unlock()
	limit := l.few().limit
	return limit != nil && time.Until(limit.at) < d
}

// endLocked ends a lease of one lock.
func (l *Lease) endLocked(end *Verdict) Ended {
	l.end = end.Fact
	return l.EndLocked(l.explain(end), end.Fact)
}

// EndLocked ends the lease and returns what is to be done outside the lock: the
// contexts to cancel with err. Metrics name the end by its fact.
func (l *Lease) EndLocked(err error, f Fact) Ended {
	l.err = err
	if l.done != nil {
		close(l.done)
	}
	contexts := l.contexts
	l.contexts = nil
	return Ended{l, contexts, f}
}

// explain makes the error of a verdict for the caller of l.
func (l *Lease) explain(v *Verdict) error { return l.entry.engine.explain(l.name, v) }

// Ended is the end of a lease, which is announced when no lock is held. Its zero value is none.
type Ended struct {
	lease    *Lease // its err does not change any more
	contexts map[<-chan struct{}]*sharedEnd
	end      Fact
}

// Announce measures the lease and cancels its contexts. No lock may be held: code that listens to the contexts
// runs.
func (d Ended) Announce() {
	if d.lease == nil {
		return
	}
	d.lease.measure(d.end)
	d.tell()
}

// measure measures how long a lease was held. The parts of several locks are measured as a whole,
// and a lease taken by re-entry is a part of the first. No lock may be held.
func (l *Lease) measure(end Fact) {
	if l.few().whole != nil || l.how == grantedReentry {
		return
	}
	eng := l.Engine()
	eng.Telemetry.Held(l.kind.String(), l.class.Label(), end.end(), func() time.Duration { return time.Since(eng.Epoch) - l.since })
}

// tell closes Done and cancels the contexts.
func (d Ended) tell() {
	if d.lease.rare != nil && d.lease.rare.whole != nil {
		d.lease.rare.whole.rare.group.PartEnded(d.lease, d.lease.err)
	}
	for _, s := range d.contexts {
		s.end(d.lease.err)
	}
}

func announceAll(all []Ended) {
	for _, d := range all {
		d.Announce()
	}
}
