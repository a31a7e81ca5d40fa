package holdfast

import (
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/internal/validity"
)

// Lease is a caller's right to a lock, from the grant until Unlock or loss.
//
// A lease is a lock with an expiry time. While it is valid and Redis keeps its data, no other owner
// has a valid lease of this lock, except that readers share it. If it ends early (expiry, deletion,
// unresponsive Redis), Valid returns false from Deadline onwards, and Done is closed at about the
// same time.
//
// Nothing can stop code that ignores its lease. Stop work when the context of [Lease.Context] is
// done. Call [Lease.Valid] before each effect. If an overlap would do damage, pass [Lease.Token] to
// the resource and let it refuse smaller ones.
//
// Any goroutine may use a lease. A lease must not be copied. A lease that is dropped without Unlock
// is renewed for as long as the process runs, or until [WithMaxHold] ends it.
type Lease struct {
	name  string
	hold  *hold  // nil: a lease of several locks
	group *group // of such a lease; else nil
	token uint64
	limit *limit        // of the hold, by WithMaxHold; nil: none
	since time.Duration // when it was granted, after Manager.epoch; of several locks: guarded by group.mu until the lease is handed out
	label *string       // of WithLabel; nil: none
	class *class        // of the name, for metrics
	kind  kind
	end   fact      // of one lock: why it ended; 0: it is held. Guarded by hold.entry.mu
	how   grantMode // of several locks: guarded by group.mu until the lease is handed out

	// The following is guarded by hold.entry.mu, or group.mu.

	err      error                          // why it ended; nil while held
	done     chan struct{}                  // made when first asked for
	contexts map[<-chan struct{}]*sharedEnd // by the Done of their parents
	next     *Lease                         // on the same hold
	prev     *Lease
	whole    *Lease   // the lease of several locks that this one is part of; nil: none
	release  *release // begun by its Unlock; nil: other leases kept the lock, or it was passed on
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
	if l.group != nil {
		return &l.group.mu
	}
	return &l.hold.entry.mu
}

// Name returns the name of the lock as the caller gave it, before any name mapper. For several
// locks it returns their names with + between.
func (l *Lease) Name() string { return l.name }

// Token returns the fencing token of the grant, or 0 without [WithFencing]. Of two grants of one
// lock that exclude each other, the later one has the larger token. Readers may share a token.
// Re-entry returns the same token, so an owner never fences itself.
//
// Tokens are not consecutive: a remote hand-off reserves 128 of them. They are below 2^53, the
// largest integer that Redis's scripts count exactly. Store a token as a 64-bit integer. If the
// counter has reached the limit, Lock returns [ErrWrongKind].
//
// The counter lives in Redis, so tokens are as durable as Redis's data. A lease of several locks
// has no token.
func (l *Lease) Token() uint64 { return l.token }

// Deadline returns the time until which the lease claims exclusivity if no answer comes from Redis
// any more. Each renewal moves it on. Just after a remote hand-off the deadline is less than two
// seconds away, until the first renewal 25 ms later. Only the deadline of a Redlock can move back,
// when a member is lost.
func (l *Lease) Deadline() time.Time {
	if l.group != nil {
		return l.group.deadline()
	}
	l.mu().Lock()
	defer l.mu().Unlock()
	return l.deadlineLocked()
}

func (l *Lease) deadlineLocked() time.Time {
	if l.limit != nil && l.limit.at.Before(l.hold.deadline) {
		return l.limit.at
	}
	return l.hold.deadline
}

// Valid reports, without I/O, whether the lease is held and now is before [Lease.Deadline].
//
// Valid looks at the monotonic and at the wall clock, because the first stops while the host sleeps
// and the second can be changed. [Lease.Err] may still be nil when Valid returns false, because a
// timer sets it. Valid narrows, but cannot close, the window in which a paused holder can do harm.
func (l *Lease) Valid() bool {
	if l.group != nil {
		return l.Err() == nil && l.group.valid()
	}
	l.mu().Lock()
	defer l.mu().Unlock()
	return l.err == nil && validity.Valid(time.Now(), l.deadlineLocked())
}

// Err returns nil while the lease is held, and then the reason why it ended: [ErrReleased],
// [ErrLeaseLost] (a *[LostError]), [ErrMaxHold] or [ErrClosed].
func (l *Lease) Err() error {
	l.mu().Lock()
	defer l.mu().Unlock()
	return l.err
}

// Done returns a channel that is closed when the lease ends, for whatever reason. Each call returns
// the same channel.
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

// endLocked ends a lease of one lock.
func (l *Lease) endLocked(end *verdict) ended {
	l.end = end.fact
	return l.endWithLocked(l.explain(end))
}

// endWithLocked ends the lease and returns what is to be done outside the lock: the
// contexts to cancel with err.
func (l *Lease) endWithLocked(err error) ended {
	l.err = err
	if l.done != nil {
		close(l.done)
	}
	contexts := l.contexts
	l.contexts = nil
	return ended{l, err, contexts}
}

// explain makes the error of a verdict for the caller of l.
func (l *Lease) explain(v *verdict) error { return l.hold.entry.m.explain(l.name, v) }

// ended is what is to be told of the end of a lease.
type ended struct {
	lease    *Lease
	err      error
	contexts map[<-chan struct{}]*sharedEnd
}

// announce measures and tells it. No lock may be held: whoever listens runs.
func (d ended) announce() {
	if d.lease != nil {
		d.lease.measure(d.err)
	}
	d.tell()
}

// tell tells it.
func (d ended) tell() {
	if d.lease != nil && d.lease.whole != nil {
		d.lease.whole.partEnded(d.lease, d.err)
	}
	for _, s := range d.contexts {
		s.end(d.err)
	}
}

func announceAll(all []ended) {
	for _, d := range all {
		d.announce()
	}
}
