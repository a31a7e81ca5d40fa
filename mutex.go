package holdfast

import "context"

// Mutex is a reentrant mutual exclusion lock, shared with Redisson's RLock of the
// same name (and, WithFencing, its RFencedLock).
//
// A Mutex is a handle: it has no state, is cheap to make and safe for concurrent
// use. What locks is the name.
//
// A locked Mutex belongs to an owner, never to a goroutine or to a handle. Each Lock is a new
// owner, unless its context descends from [Lease.Context] of a held lease of this lock: then it
// re-enters. It returns at once, without a Redis command, with a lease of its own and the same
// fencing token, and the lock is free after the last of these leases is unlocked. Leases of other
// locks in the context change nothing. A lease taken by re-entry shares the hold of the first, so
// its own lease options have no effect. Asking for WithFencing where the first lease has no token
// returns ErrInvalidOption. Under the context of a FairMutex of the same name Lock returns
// ErrWouldDeadlock, and the other way round.
//
// Among the goroutines of one process the lock is granted in the order of their
// calls, without a Redis command if they have the same options, none of them WithFixedLease;
// while another process waits, for WithHandoffSlice (see there). Processes take turns in the
// order in which they began to wait; each has one place in the queue, however many of its
// callers wait. A FairMutex has one order for all callers.
type Mutex struct{ handle }

// Mutex returns the handle of the named mutex. A bad name or option is reported by
// the first call on the handle.
func (m *Manager) Mutex(name string, opts ...LockOption) *Mutex {
	return &Mutex{m.newHandle(mutexKind, name, opts)}
}

// Lock locks the mutex. It blocks until the lock is granted or ctx is done, and while
// Redis is in trouble it keeps trying until then. It fails at once if trying would not help: if the client is
// closed, or Redis does not know the command. If Redis does not let the client (a wrong password, a missing
// right), it fails at once too, or after 30 s if Redis has let this Manager before: passwords are
// changed and rights are loaded while programs run.
//
// The lease is renewed until Unlock, Manager.Close or loss, unless WithFixedLease or
// WithMaxHold say otherwise. On error the lock is not held and nothing is kept: Lock
// returns ErrNotAcquired with the context's cause if ctx ended first, also if the
// grant came at that moment (it has then been given back); ErrUnavailable, also with
// that cause, if Redis was the reason; ErrClosed, ErrWouldDeadlock, ErrWrongKind, ErrInvalidName
// or ErrInvalidOption. It returns within 50 ms of the end of ctx, whatever Redis does,
// if the process gets the CPU: where thousands of callers share a context, each takes its turn, 2 to 9 µs
// of a busy core. A request that is under way then is undone in the background.
func (l *Mutex) Lock(ctx context.Context) (*Lease, error) { return l.side().lock(ctx, "Lock", false) }

// TryLock asks once and waits for no other owner. It returns ErrNotAcquired if another owner
// held the lock at some moment of the call, and ErrUnavailable if Redis refused or did not
// answer in time: a quarter of the lease, but at least 100 ms and at most a second, or twelve round trips
// where Redis is far away, and the timeout of WithReplicas on top; docs/OPERATIONS.md has the figures. A
// request over a connection that is dead is repeated over another one within that time. If Redis has not answered earlier requests of this process for the
// lock, or its release, it can take three times as long. Otherwise it is like Lock.
func (l *Mutex) TryLock(ctx context.Context) (*Lease, error) {
	return l.side().lock(ctx, "TryLock", true)
}

// LockAsync is Lock without the wait: exactly one result arrives on the returned channel,
// which is buffered, so that nothing waits for somebody to receive it. A lease that
// arrives is held, and must be unlocked, even if ctx has ended since. No goroutine is
// parked for it.
func (l *Mutex) LockAsync(ctx context.Context) <-chan Result {
	return l.side().lockAsync(ctx, "LockAsync")
}

// side returns the lock's handle; nil if l is.
func (l *Mutex) side() *handle {
	if l == nil {
		return nil
	}
	return &l.handle
}
