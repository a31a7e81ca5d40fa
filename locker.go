package holdfast

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/holdfast-go/holdfast/internal/engine"
)

// Locker is any kind of lock.
type Locker interface {
	// Lock blocks until the lock is granted or ctx is done, and returns immediately if waiting cannot
	// succeed. ctx bounds the wait and carries the trace and leases. It does not own the lease: if ctx
	// ends after Lock has returned, the lock stays held. For errors, and what is left behind on one,
	// see [Mutex.Lock], [Multi.Lock] and [Redlock.Lock].
	Lock(ctx context.Context) (*Lease, error)
	// TryLock makes one attempt. It returns [ErrNotAcquired] if another owner holds the lock or is
	// ahead in the queue. Otherwise it is like Lock.
	TryLock(ctx context.Context) (*Lease, error)
}

// Result is the outcome of LockAsync: a lease or an error, never both.
type Result struct {
	Lease *Lease
	Err   error
}

// Do locks l, calls fn with a context that is cancelled when the lease ends, and unlocks, even if
// fn panics. If the lock is not granted, fn is not called. fn may unlock the lease itself.
//
// Do returns fn's own error. Unless it contains them, such as [context.Cause] of fn's context, joined to
// it are
//
//   - [ErrLeaseLost] or [ErrMaxHold] if the lease ended while fn ran: another holder may have
//     overlapped.
//   - [ErrClosed] if [Manager.Close] ended the lease.
//   - [ErrNotReleased], a *[ReleaseError], if Redis has not confirmed the release: fn was
//     protected, and the lock is released in the background or expires with its TTL, see
//     [Lease.Unlock].
//
// If Do returns an [ErrUnavailable] that fn did not return, and to which neither ErrLeaseLost nor
// ErrMaxHold is joined, fn was not called and Do can be called again.
//
// Do blocks for as long as Lock, fn and Unlock take. ctx bounds all of it, because fn's context
// derives from ctx. [WithWait] bounds the wait alone.
func Do(ctx context.Context, l Locker, fn func(ctx context.Context, lease *Lease) error) (err error) {
	switch {
	case ctx == nil:
		return missing("Do", "context")
	case l == nil:
		return missing("Do", "lock")
	case fn == nil:
		return missing("Do", "function")
	}
	lease, err := l.Lock(ctx)
	if err != nil {
		return err
	}
	defer lease.UnlockInto(ctx, &err)
	return fn(lease.Context(ctx), lease)
}

// unprotected returns the error of an Unlock if it says that the section was not protected
// to its end, and not only that the release is not confirmed yet. Several locks can say both.
func unprotected(err error) error {
	if errors.Is(err, ErrUnavailable) && !errors.Is(err, ErrLeaseLost) && !errors.Is(err, ErrMaxHold) {
		return nil
	}
	return err
}

// SyncLocker adapts l to sync.Locker, for code that takes one. A sync.Locker cannot return errors,
// so this one panics with them.
//
// Lock waits as [Locker.Lock] does: it retries through trouble with Redis until ctx is done. Then
// it panics with the error.
//
// Unlock panics with [ErrNotHeld] if nothing is locked. It panics with [ErrLeaseLost], [ErrMaxHold]
// or [ErrClosed] if the lease ended early, because the critical section was not protected to its
// end. It does not panic with [ErrUnavailable]: the lock is released in the background, or expires
// with its TTL.
//
// Give each goroutine a SyncLocker of its own, so that each Unlock ends its own Lock. Goroutines
// that share one exclude each other as well, unless ctx descends from [Lease.Context] of a held
// lease of l, under which each Lock re-enters. But a shared SyncLocker cannot tell its callers
// apart. Each Unlock ends the latest Lock, and a lease that has ended early comes first. After a
// loss the next Unlock panics, whichever goroutine calls it, and the lock stays held until Unlock
// was called as often as Lock. If the holder that lost the lease never calls Unlock, the lock stays
// held forever.
func SyncLocker(ctx context.Context, l Locker) sync.Locker {
	return &syncLocker{ctx: ctx, l: l}
}

type syncLocker struct {
	ctx context.Context
	l   Locker

	mu     sync.Mutex // guards leases; not held while locking
	leases []*Lease   // held, the latest last
}

func (s *syncLocker) Lock() {
	if s.l == nil {
		panic(missing("SyncLocker", "lock"))
	}
	lease, err := s.l.Lock(s.ctx)
	if err != nil {
		panic(err)
	}
	s.mu.Lock()
	s.leases = append(s.leases, lease)
	s.mu.Unlock()
}

func (s *syncLocker) Unlock() {
	s.mu.Lock()
	n := len(s.leases) - 1
	if n < 0 {
		s.mu.Unlock()
		panic(engine.NewError(ErrNotHeld, nameOf(s.l), errNothingLocked))
	}
	i := slices.IndexFunc(s.leases, func(l *Lease) bool { return !l.Valid() })
	if i < 0 {
		i = n
	}
	lease := s.leases[i]
	s.leases = slices.Delete(s.leases, i, i+1)
	s.mu.Unlock()

	if err := unprotected(lease.Unlock(s.ctx)); err != nil {
		panic(err)
	}
}

var errNothingLocked = errors.New("this sync.Locker has locked nothing")

// nameOf returns the name of a lock, or "" if it is of another package's type.
func nameOf(l Locker) string {
	var h *handle
	switch l := l.(type) {
	case interface{ side() *handle }:
		h = l.side()
	case readSide:
		h = l.l.readSide()
	case permits:
		if l.s != nil {
			h = &l.s.one
		}
	case interface{ together() *handle }:
		h = l.together()
	}
	if !h.made() {
		return ""
	}
	return h.lock.Name
}
