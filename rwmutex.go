package holdfast

import (
	"context"

	"github.com/holdfast-go/holdfast/internal/lock"
)

// RWMutex is a re-entrant lock for many readers or one writer. It is shared with Redisson's
// RReadWriteLock of the same name. Lock is the write side, and RLock the read side.
//
// The readers of one process share one hold in Redis. While one of them holds the lock, the next is
// admitted without a Redis command, unless its options ([WithFixedLease], [WithMaxHold], another
// lease) need a hold of their own. With fencing the readers of a hold share its token, because they
// do not exclude each other. A read side that was the write side belongs to its owner alone: other
// readers get a hold, and a larger token, of their own.
//
// Neither side starves among processes of Holdfast. A waiting writer blocks new readers, and a
// release admits either the writer or all readers queued before the next writer. While a process
// holds the read side and more readers arrive, it asks Redis once per [WithHandoffSlice] (per
// [DefaultHandoffSlice] if that is 0) whether a writer waits in another process. Until the answer
// arrives, a round trip later, it admits readers. Redisson's readers do not wait behind a waiting
// writer.
//
// A writer may take the read side under the context of its lease (see [Mutex]), and may keep
// reading after it unlocks the write side. Other readers are then admitted. A reader cannot
// upgrade: Lock returns [ErrWouldDeadlock] at once. A side that is held can always be re-entered
// under the context of its lease.
type RWMutex struct {
	handle
	read handle
}

// RWMutex returns a handle of the named read-write lock. The first call on the handle returns an
// error if the name or an option is bad.
func (m *Manager) RWMutex(name string, opts ...LockOption) *RWMutex {
	write := m.newHandle(lock.WriteKind, name, opts)
	return &RWMutex{write, handle{write.m, write.lock.Side(lock.ReadKind), write.err, write.wait}}
}

// Lock takes the write side. It is like [Mutex.Lock], and returns [ErrWouldDeadlock] if ctx
// descends from [Lease.Context] of a held lease of the read side only.
func (l *RWMutex) Lock(ctx context.Context) (*Lease, error) { return l.side().take(ctx, "Lock", false) }

// TryLock takes the write side. It is like [Mutex.TryLock].
func (l *RWMutex) TryLock(ctx context.Context) (*Lease, error) {
	return l.side().take(ctx, "TryLock", true)
}

// LockAsync takes the write side. It is like [Mutex.LockAsync].
func (l *RWMutex) LockAsync(ctx context.Context) <-chan Result {
	return l.side().takeAsync(ctx, "LockAsync")
}

// RLock takes the read side. Otherwise it is like [Mutex.Lock].
func (l *RWMutex) RLock(ctx context.Context) (*Lease, error) {
	return l.readSide().take(ctx, "RLock", false)
}

// TryRLock takes the read side without waiting. It returns [ErrNotAcquired] if a writer holds the
// lock or waits for it. A process that already has readers may not yet know about a writer that
// waits in another process: see [RWMutex]. Otherwise TryRLock is like [Mutex.TryLock].
func (l *RWMutex) TryRLock(ctx context.Context) (*Lease, error) {
	return l.readSide().take(ctx, "TryRLock", true)
}

// RLockAsync takes the read side. Otherwise it is like [Mutex.LockAsync].
func (l *RWMutex) RLockAsync(ctx context.Context) <-chan Result {
	return l.readSide().takeAsync(ctx, "RLockAsync")
}

// RLocker returns the read side as a [Locker], for [Do] and other functions that take one.
func (l *RWMutex) RLocker() Locker { return readSide{l} }

type readSide struct{ l *RWMutex }

func (r readSide) Lock(ctx context.Context) (*Lease, error)    { return r.l.RLock(ctx) }
func (r readSide) TryLock(ctx context.Context) (*Lease, error) { return r.l.TryRLock(ctx) }

// side returns the lock's handle of the write side; nil if l is.
func (l *RWMutex) side() *handle {
	if l == nil {
		return nil
	}
	return &l.handle
}

// readSide returns the handle of the read side; nil if l is.
func (l *RWMutex) readSide() *handle {
	if l == nil {
		return nil
	}
	return &l.read
}
