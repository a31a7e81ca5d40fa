package holdfast

import (
	"context"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/internal/validity"
)

// Lease is a caller's right to a lock, from the grant until Unlock or loss.
//
// A lease is a promise with an end. While it is valid and Redis keeps its data, no
// other lease of this lock is; when it ends early, through expiry, deletion or a
// silent Redis, Valid is false from Deadline on, and Done is closed by then or as soon
// after as a timer runs. Nothing can stop code that does not look: stop work when
// Context is done, call Valid before each effect, and where an overlap would do damage
// give Token to the resource and let it refuse smaller ones.
//
// Any goroutine may use a lease. A lease must not be copied. One that is dropped
// without Unlock is renewed for as long as the process runs, or until WithMaxHold.
type Lease struct {
	name  string
	hold  *hold  // nil: a lease of several locks
	group *group // of such a lease; else nil
	owner *owner
	token uint64
	limit *limit // the owner's, by WithMaxHold; nil: none
	kind  kind
	how   grantMode // of several locks: guarded by group.mu until the lease is handed out
	self  owner     // the owner, where this lease began one

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
	grantedReentry                    // its owner had the lock already
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

// Name returns the name of the lock, as it was given and before any mapper; of several
// locks, their names with + between.
func (l *Lease) Name() string { return l.name }

// Token returns the fencing token of the grant: of two grants of one lock the later
// has the larger token. It is 0 without WithFencing. Re-entering returns the same
// token, so that an owner never fences itself. Tokens are not consecutive: a hand-over
// between processes reserves 128 of them. They end at 2^53, as exact numbers of Redis's
// scripts do: from there on a lock with fencing is ErrUnavailable. Keep 64 bits for one.
//
// The counter lives in Redis: tokens are as durable as its data. A lease of several
// locks has no token.
func (l *Lease) Token() uint64 { return l.token }

// Deadline returns the time until which exclusivity is claimed if nothing more is
// heard from Redis: in less than two seconds for the first 25 ms of a lease that came from
// another release, see the package's section on validity. Renewal moves it on; only that of
// a Redlock can move back, when a member is lost.
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

// Valid reports, without I/O, whether the lease is held and now is before Deadline
// by the monotonic and by the wall clock: the first stands still while the host
// sleeps, the second can be set. It narrows the window in which a paused holder can
// do harm; it cannot close it.
func (l *Lease) Valid() bool {
	if l.group != nil {
		return l.Err() == nil && validity.Valid(time.Now(), l.group.deadline())
	}
	l.mu().Lock()
	defer l.mu().Unlock()
	return l.err == nil && validity.Valid(time.Now(), l.deadlineLocked())
}

// Err returns nil while the lease is held and then why it ended: ErrReleased,
// ErrLeaseLost (a *LostError), ErrMaxHold or ErrClosed.
func (l *Lease) Err() error {
	l.mu().Lock()
	defer l.mu().Unlock()
	return l.err
}

// Done returns a channel that is closed when the lease ends, for whatever reason.
// Each call returns the same channel.
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

// endLocked ends the lease and returns what is to be done outside the lock: the
// contexts to cancel with err.
func (l *Lease) endLocked(err error) ended {
	l.err = err
	if l.done != nil {
		close(l.done)
	}
	contexts := l.contexts
	l.contexts = nil
	return ended{l, err, contexts}
}

// ended is what is to be told of the end of a lease.
type ended struct {
	lease    *Lease
	err      error
	contexts map[<-chan struct{}]*sharedEnd
}

// announce tells it. No lock may be held: whoever listens runs.
func (d ended) announce() {
	if d.lease != nil && d.lease.whole != nil {
		d.lease.whole.partEnded(d.lease, d.err)
	}
	for _, s := range d.contexts {
		s.end(d.err)
	}
}

// Unlock gives the lease up. After the last lease of its owner the lock goes to the
// next caller in this process or back to Redis.
//
// It returns nil if this call, or an earlier copy of its request whose reply was
// lost, released the lock; ErrLeaseLost or ErrMaxHold if the lease had ended before,
// ErrClosed if Manager.Close ended it; ErrNotHeld after an Unlock that succeeded; and
// ErrUnavailable if Redis did not answer in time, or denied it. Without an answer the
// release goes on in the background, and calling Unlock again waits for it; denied (NOPERM,
// NOAUTH), it is not repeated. Renewal has stopped in any case, so that at worst the lock
// expires with its TTL.
//
// Unlock asks Redis as often as need be and blocks for at most a second (a quarter of a
// short lease's TTL, but 100 ms at the least), whether ctx is done or not: ctx carries the
// trace only.
func (l *Lease) Unlock(ctx context.Context) error {
	if l.group != nil {
		return l.group.unlock(ctx, l)
	}
	_, op := l.hold.entry.m.telemetry.release(ctx, l)
	err := l.unlock(op.trace())
	op.released(err)
	return err
}

func (l *Lease) unlock(trace context.Context) error {
	e, h := l.hold.entry, l.hold
	now := time.Now()
	e.mu.Lock()
	if l.err == nil && !now.Before(l.deadlineLocked()) {
		defer e.oversleptLocked(h)()
	}
	switch {
	case l.err == ErrReleased:
		return l.unlockAgainLocked()
	case l.err != nil:
		err := l.err
		l.settleLocked()
		e.mu.Unlock()
		return err
	}
	gone := l.endLocked(ErrReleased)
	r := l.leaveLocked(now, trace)
	l.release = r
	var told chan struct{}
	if r != nil && !r.told {
		told = e.m.newReady()
		r.caller = told
	}
	e.mu.Unlock()
	gone.announce()
	e.m.stats.released.Add(1)
	if told != nil {
		<-told
		e.m.ready.Put(told)
	}
	if r == nil {
		return nil
	}
	return r.answer
}

// leaveLocked takes a lease that has been given up off its hold. It returns the release or
// downgrade that this begins, nil if it begins none.
func (l *Lease) leaveLocked(now time.Time, trace context.Context) (r *release) {
	e, h := l.hold.entry, l.hold
	switch last := h.drop(l); {
	case last:
		r = e.passLocked(h, now, trace)
	case h.phase == held && h.kind == writeKind && !h.writes():
		r = e.downgradeLocked(h, trace)
		e.ask = true
		e.stepLocked()
	}
	return r
}

// settleLocked takes a lease that ended early off its hold, and with the last one gives back
// what may still be in Redis: nobody else could be in before the TTL ends.
func (l *Lease) settleLocked() {
	e, h := l.hold.entry, l.hold
	if h.drop(l) && h.owed {
		h.owed = false
		e.ask = true
		e.releaseLocked(h, nil)
		e.stepLocked()
	}
}

// unlockAgainLocked is Unlock after Unlock. It unlocks the entry. If the first one began
// a release, this one waits for its verdict as well.
func (l *Lease) unlockAgainLocked() error {
	e, r := l.hold.entry, l.release
	if r == nil {
		e.mu.Unlock()
		return newLockError(ErrNotHeld, l.name)
	}
	c := r.askedAgainLocked()
	e.mu.Unlock()
	select {
	case err := <-c:
		return err
	case <-time.After(validity.Patience(l.hold.cfg.ttl)):
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if err, ok := r.leaveLocked(c); ok {
		return err
	}
	if r.answer != nil { // of the Unlock before: it says what the trouble is
		return r.answer
	}
	return newLockError(ErrUnavailable, l.name, errSilent)
}

// giveBack is Unlock without waiting for the answer: of a lease that was granted to a caller
// who had left, or is part of one that has ended.
func (l *Lease) giveBack() {
	e := l.hold.entry
	e.mu.Lock()
	var gone ended
	if l.err == nil {
		gone = l.endLocked(ErrReleased)
		l.leaveLocked(time.Now(), nil)
	} else {
		l.settleLocked()
	}
	e.mu.Unlock()
	gone.announce()
}

func announceAll(all []ended) {
	for _, d := range all {
		d.announce()
	}
}
