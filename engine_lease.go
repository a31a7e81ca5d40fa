package holdfast

import (
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/internal/validity"
)

// engineLease is a caller's right to a lock, from the grant until Unlock or loss: of one lock, which has a hold, or of several.
// All fields are of this package, for what the root package makes of the type is what users see.
type engineLease struct {
	name  string
	hold  *hold   // nil: a lease of several locks
	group several // of such a lease; else nil
	token uint64
	limit *limit        // of the hold, by WithMaxHold; nil: none
	since time.Duration // when it was granted, after Engine.epoch; of several locks: guarded by their mutex until the lease is handed out
	class *class        // of the name, for metrics
	label *string       // of WithLabel; nil: none
	kind  kind
	end   fact      // of one lock: why it ended; 0: it is held. Guarded by hold.entry.mu
	how   grantMode // of several locks: guarded by their mutex until the lease is handed out

	// The following is guarded by hold.entry.mu, or by the mutex of several locks.

	err      error                          // why it ended; nil while held
	done     chan struct{}                  // made when first asked for
	contexts map[<-chan struct{}]*sharedEnd // by the Done of their parents
	next     *engineLease                   // on the same hold
	prev     *engineLease
	whole    *engineLease // the lease of several locks that this one is part of; nil: none
	release  *release     // begun by its Unlock; nil: other leases kept the lock, or it was passed on
}

// several is what a lease of several locks consists of, as far as it and its parts have to know.
type several interface {
	Engine() *Engine                                         // of the first lock
	Guard() *sync.Mutex                                      // guards what changes of the lease
	Held(whole *engineLease) []*engineLease                  // the parts; none once the lease has ended
	PartEnded(whole *engineLease, p *engineLease, err error) // is called when a part has ended, with no lock held
}

// newSeveral makes a lease of several locks, which is held until EndSeveralLocked.
func newSeveral(as *engineLock, of several) *engineLease {
	return &engineLease{name: as.name, kind: as.kind, class: as.class, how: grantedReentry, group: of}
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
func (l *engineLease) mu() *sync.Mutex {
	if l.group != nil {
		return l.group.Guard()
	}
	return &l.hold.entry.mu
}

// Name is the name of the lock as its caller has given it.
func (l *engineLease) Name() string { return l.name }

// Token is the fencing token; 0: none.
func (l *engineLease) Token() uint64 { return l.token }

// Kind is which lock, and which side of it, the caller has asked for.
func (l *engineLease) Kind() kind { return l.kind }

// Mode says how the lease came about.
func (l *engineLease) Mode() string { return l.how.String() }

// Several is what the lease consists of if it is one of several locks, else nil.
func (l *engineLease) Several() several { return l.group }

// Made reports whether a lock has granted the lease: it is not a zero value.
func (l *engineLease) Made() bool { return l.hold != nil || l.group != nil }

// Class is the class of the name, for metrics.
func (l *engineLease) Class() string { return l.class.label() }

// Engine is the engine of the lease's lock, or of the first of several.
func (l *engineLease) Engine() *Engine {
	if l.group != nil {
		return l.group.Engine()
	}
	return l.hold.entry.m
}

// Deadline is until when a lease of one lock is trusted.
func (l *engineLease) Deadline() time.Time {
	l.mu().Lock()
	defer l.mu().Unlock()
	return l.deadlineLocked()
}

func (l *engineLease) deadlineLocked() time.Time {
	if l.limit != nil && l.limit.at.Before(l.hold.deadline) {
		return l.limit.at
	}
	return l.hold.deadline
}

// Valid reports whether a lease of one lock is held and its deadline has not come.
func (l *engineLease) Valid() bool {
	l.mu().Lock()
	defer l.mu().Unlock()
	return l.err == nil && validity.Valid(time.Now(), l.deadlineLocked())
}

// Err is why the lease has ended; nil: it is held.
func (l *engineLease) Err() error {
	l.mu().Lock()
	defer l.mu().Unlock()
	return l.err
}

// ErrLocked is Err of a lease of several locks, whose mutex is held.
func (l *engineLease) ErrLocked() error { return l.err }

// Done is closed when the lease ends. Each call returns the same channel.
func (l *engineLease) Done() <-chan struct{} {
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
func (l *engineLease) stillHeld() error {
	l.mu().Lock()
	defer l.mu().Unlock()
	if l.end == released {
		return l.explain(because(notHeld))
	}
	return l.err
}

// LimitedTo reports whether WithMaxHold ends the lease before d is over.
func (l *engineLease) LimitedTo(d time.Duration) bool {
	return l.limit != nil && time.Until(l.limit.at) < d
}

// endLocked ends a lease of one lock.
func (l *engineLease) endLocked(end *verdict) ended {
	l.end = end.fact
	return l.EndLocked(l.explain(end), end.fact.end())
}

// EndLocked ends the lease and returns what is to be done outside the lock: the
// contexts to cancel with err. Metrics call the end by its name.
func (l *engineLease) EndLocked(err error, name string) ended {
	l.err = err
	if l.done != nil {
		close(l.done)
	}
	contexts := l.contexts
	l.contexts = nil
	return ended{l, err, name, contexts}
}

// explain makes the error of a verdict for the caller of l.
func (l *engineLease) explain(v *verdict) error { return l.hold.entry.m.explain(l.name, v) }

// ended is what is to be told of the end of a lease.
type ended struct {
	lease    *engineLease
	err      error
	name     string // of the end
	contexts map[<-chan struct{}]*sharedEnd
}

// Announce measures and tells it. No lock may be held: whoever listens runs.
func (d ended) Announce() {
	if d.lease != nil {
		d.lease.measure(d.name)
	}
	d.tell()
}

// measure measures how long a lease was held. The parts of several locks are measured as a whole,
// and a lease taken by re-entry is a part of the first. No lock may be held.
func (l *engineLease) measure(end string) {
	if l.whole != nil || l.how == grantedReentry {
		return
	}
	m := l.Engine()
	m.telemetry.Held(l.kind.String(), l.class.label(), end, func() time.Duration { return time.Since(m.epoch) - l.since })
}

// tell tells it.
func (d ended) tell() {
	if d.lease != nil && d.lease.whole != nil {
		whole := d.lease.whole
		whole.group.PartEnded(whole, d.lease, d.err)
	}
	for _, s := range d.contexts {
		s.end(d.err)
	}
}

func announceAll(all []ended) {
	for _, d := range all {
		d.Announce()
	}
}
