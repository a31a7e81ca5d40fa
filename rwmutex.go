package holdfast

import "context"

// RWMutex is a reentrant lock with two sides: many readers or one writer, shared with
// Redisson's RReadWriteLock of the same name. Its own methods are the write side.
//
// Readers of one process share one hold in Redis: while one of them holds the lock,
// the next comes in without a Redis command, unless its options (WithFixedLease,
// WithMaxHold, another lease) need a hold of their own. With fencing they share its
// token: they do not exclude each other. A read side that was the write side is then
// its owner's alone, and readers who come get a hold, and a larger token, of their own.
//
// Neither side starves among processes of Holdfast: a waiting writer, here or in another
// process, keeps new readers out, and a release lets in either the writer or all
// readers up to the next writer. When another reader comes to one that is inside, their process asks
// whether a writer waits elsewhere, once per WithHandoffSlice (where that is 0, its default); until it
// is answered, a round trip later, readers still come in. Redisson's readers do
// not wait behind a waiting writer.
//
// Under the context of its lease (see [Mutex]) a holder of the write side may take the read side as
// well; when it unlocks the write side first, it keeps the read side and other readers come in.
// The other direction would wait for itself and returns ErrWouldDeadlock at once. A side
// that is held can always be entered again under the context of its lease.
type RWMutex struct {
	handle
	read handle
}

// RWMutex returns the handle of the named read-write lock. A bad name or option is
// reported by the first call on the handle.
func (m *Manager) RWMutex(name string, opts ...LockOption) *RWMutex {
	write := m.newHandle(writeKind, name, opts)
	return &RWMutex{write, handle{write.named, readKind}}
}

// Lock takes the write side; it is like Mutex.Lock, and returns ErrWouldDeadlock if ctx
// descends from Lease.Context of a held lease of the read side only.
func (l *RWMutex) Lock(ctx context.Context) (*Lease, error) { return l.side().lock(ctx, "Lock", false) }

// TryLock takes the write side; it is like Mutex.TryLock.
func (l *RWMutex) TryLock(ctx context.Context) (*Lease, error) {
	return l.side().lock(ctx, "TryLock", true)
}

// LockAsync takes the write side; it is like Mutex.LockAsync.
func (l *RWMutex) LockAsync(ctx context.Context) <-chan Result {
	return l.side().lockAsync(ctx, "LockAsync")
}

// RLock takes the read side; otherwise it is like Mutex.Lock.
func (l *RWMutex) RLock(ctx context.Context) (*Lease, error) {
	return l.readSide().lock(ctx, "RLock", false)
}

// TryRLock takes the read side without waiting. It returns ErrNotAcquired if a writer
// holds the lock or waits for it; of one that waits in another process, a process that has a
// reader inside may not have learned yet (see RWMutex). Otherwise it is like Mutex.TryLock.
func (l *RWMutex) TryRLock(ctx context.Context) (*Lease, error) {
	return l.readSide().lock(ctx, "TryRLock", true)
}

// RLockAsync takes the read side; otherwise it is like Mutex.LockAsync.
func (l *RWMutex) RLockAsync(ctx context.Context) <-chan Result {
	return l.readSide().lockAsync(ctx, "RLockAsync")
}

// RLocker returns the read side as a Locker of its own.
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
