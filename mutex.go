package holdfast

import (
	"context"

	"github.com/holdfast-go/holdfast/internal/lock"
)

// Mutex is a re-entrant mutual exclusion lock. It is shared with Redisson's RLock of the same name
// and, with [WithFencing], with its RFencedLock.
//
// A Mutex is a handle: it has no state, is cheap to make and safe for concurrent use. The lock is
// known by its name.
//
// A lock belongs to an owner, never to a goroutine or to a handle. Each Lock is a new owner, unless
// its context descends from [Lease.Context] of a held lease of this lock. Then it re-enters: it
// returns at once, without a Redis command, with a lease of its own and the same fencing token. The
// lock is free after the last of these leases is unlocked. Leases of other locks in the context
// change nothing. A re-entrant lease shares the hold of the first lease, so its lease options are
// ignored.
//
// Within a process the lock is granted in call order. No Redis command is needed if the callers use
// the same options and none uses [WithFixedLease]. While another process waits, this continues for
// at most [WithHandoffSlice]. Processes take turns in the order in which they began to wait. Each
// has one place in the queue, however many of its callers wait. A [FairMutex] has one order for all
// callers.
type Mutex struct{ handle }

// Mutex returns a handle of the named mutex. The first call on the handle returns an error if the
// name or an option is bad.
func (m *Manager) Mutex(name string, opts ...LockOption) *Mutex {
	return &Mutex{m.newHandle(lock.MutexKind, name, opts)}
}

// Lock blocks until the mutex is granted or ctx is done.
//
// The lease is renewed until Unlock, [Manager.Close] or loss, unless [WithFixedLease] or
// [WithMaxHold] is set. ctx bounds the wait only: if it ends after Lock has returned, the lease
// stays.
//
// While Redis is in trouble, Lock keeps trying until ctx is done. It fails at once if trying cannot
// help: the client is closed, or Redis does not know the command. If Redis denies access (a wrong
// password, a missing right), Lock fails at once too, or after 30 s if Redis has admitted this
// Manager before, because passwords and rights change while programs run.
//
// On error the lock is not held, and nothing stays behind: see [ErrNotAcquired]. Lock returns
//
//   - [ErrNotAcquired], with the context's cause, if ctx ended first. A grant that came at that
//     moment has been released.
//   - [ErrUnavailable] if Redis was the reason, with the context's cause if ctx has ended.
//   - [ErrClosed] if the Manager is closed.
//   - [ErrWouldDeadlock] under the context of a held lease of the FairMutex of the same name.
//   - [ErrWrongKind] if the key of the lock holds something else.
//   - [ErrInvalidName] for a bad name.
//   - [ErrInvalidOption] for a bad option or a nil ctx, and on re-entry [WithFencing] if the first
//     lease has no token.
//
// Lock returns within 50 ms of the end of ctx, whatever Redis does, if the process gets the CPU.
// Thousands of callers that share a context return one after the other, 2 to 9 µs of a busy core
// each. A request in flight is rolled back in the background.
func (l *Mutex) Lock(ctx context.Context) (*Lease, error) { return l.side().take(ctx, "Lock", false) }

// TryLock makes one attempt and does not wait for another owner. It returns [ErrNotAcquired] if
// another owner held the lock at some moment of the call, and [ErrUnavailable] if Redis refused or
// did not answer in time. Otherwise it is like [Mutex.Lock].
//
// TryLock blocks for at most a quarter of the lease, at least 100 ms and at most a second, and the
// timeout of [WithReplicas] on top. It can take longer if Redis is far away, up to five seconds if
// Redis has not answered this Manager yet, and three times as long if earlier requests of this
// process for the lock are unanswered, or if the holder uses [WithLinger]: see docs/OPTIONS.md. A request over a dead connection is
// repeated over another one within that time.
func (l *Mutex) TryLock(ctx context.Context) (*Lease, error) {
	return l.side().take(ctx, "TryLock", true)
}

// LockAsync is [Mutex.Lock] without the wait: exactly one [Result] arrives on the returned channel.
// The channel is buffered, and no goroutine is parked. A lease that arrives is held and must be
// unlocked, even if ctx has ended since.
func (l *Mutex) LockAsync(ctx context.Context) <-chan Result {
	return l.side().takeAsync(ctx, "LockAsync")
}

// side returns the lock's handle; nil if l is.
func (l *Mutex) side() *handle {
	if l == nil {
		return nil
	}
	return &l.handle
}
