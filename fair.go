package holdfast

import (
	"context"

	"github.com/holdfast-go/holdfast/internal/lock"
)

// FairMutex is a [Mutex] that is granted in the order of arrival over all processes. It is shared
// with Redisson's RFairLock of the same name.
//
// Every waiting call has its own place in the lock's queue in Redis, where Redisson's waiters stand
// as well. A call arrives when Redis executes its request. A waiter that gives up leaves the queue
// at once.
//
// A waiter keeps its place while it waits. It loses the place if its process is silent for longer
// than [WithFairPatience], or has no connection for messages when its turn comes. A process that
// comes back after that finds its waiters at the front again.
//
// A waiter that dies in the queue normally delays no other waiter, and at worst delays the queue by
// two seconds. All waiters of one crashed process together delay it by at most WithFairPatience
// plus two seconds.
//
// The order has a price: each grant is a message from Redis, and each acquisition takes two
// commands, even between goroutines of one process.
type FairMutex struct{ handle }

// FairMutex returns a handle of the named fair lock. The first call on the handle returns an error
// if the name or an option is bad.
func (m *Manager) FairMutex(name string, opts ...LockOption) *FairMutex {
	return &FairMutex{m.newHandle(lock.FairKind, name, opts)}
}

// Lock is like [Mutex.Lock], and serves callers in the order of arrival.
func (l *FairMutex) Lock(ctx context.Context) (*Lease, error) {
	return l.side().take(ctx, "Lock", false)
}

// TryLock is like [Mutex.TryLock]. It does not overtake: it returns [ErrNotAcquired] even if the
// lock is only about to go to a waiter.
func (l *FairMutex) TryLock(ctx context.Context) (*Lease, error) {
	return l.side().take(ctx, "TryLock", true)
}

// LockAsync is like [Mutex.LockAsync], and serves callers in the order of arrival.
func (l *FairMutex) LockAsync(ctx context.Context) <-chan Result {
	return l.side().takeAsync(ctx, "LockAsync")
}

// side returns the lock's handle; nil if l is.
func (l *FairMutex) side() *handle {
	if l == nil {
		return nil
	}
	return &l.handle
}
