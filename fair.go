package holdfast

import "context"

// FairMutex is a Mutex that is granted in the order of arrival over all processes,
// shared with Redisson's RFairLock of the same name.
//
// Every waiting call has a place of its own in the queue that the lock has in Redis,
// where Redisson's waiters stand as well. Arrival is when Redis executes the request.
// A waiter keeps its place for as long as it waits and its process is not silent for
// longer than WithFairPatience, or without its connection for messages when its turn
// comes; a process that comes back after that finds its waiters at the front again. A
// waiter that gives up leaves the queue at once. One that dies in it usually costs the
// others nothing, and two seconds at most; all those of one dead process together cost at
// most the patience and two seconds.
//
// The order has its price, which a Mutex saves: each grant is a message from Redis and
// each acquisition takes two commands, also between goroutines of one process.
type FairMutex struct{ handle }

// FairMutex returns the handle of the named fair lock. A bad name or option is
// reported by the first call on the handle.
func (m *Manager) FairMutex(name string, opts ...LockOption) *FairMutex {
	return &FairMutex{m.newHandle(fairKind, name, opts)}
}

// Lock is Mutex.Lock, in the order of arrival.
func (l *FairMutex) Lock(ctx context.Context) (*Lease, error) {
	return l.side().lock(ctx, "Lock", false)
}

// TryLock is Mutex.TryLock. It does not overtake: it returns ErrNotAcquired also if the
// lock is about to go to somebody who waits.
func (l *FairMutex) TryLock(ctx context.Context) (*Lease, error) {
	return l.side().lock(ctx, "TryLock", true)
}

// LockAsync is Mutex.LockAsync, in the order of arrival.
func (l *FairMutex) LockAsync(ctx context.Context) <-chan Result {
	return l.side().lockAsync(ctx, "LockAsync")
}

// side returns the lock's handle; nil if l is.
func (l *FairMutex) side() *handle {
	if l == nil {
		return nil
	}
	return &l.handle
}
