package holdfast

import (
	"context"
	"errors"
	"slices"
	"sync"
)

// Locker is any kind of lock.
type Locker interface {
	// Lock waits until the lock is granted or ctx is done, and fails at once where no
	// waiting would help. ctx bounds the wait and carries trace and leases; it does not own
	// the lease: ending ctx after Lock has returned does not release the lock. For errors, and
	// what is left behind on one, see Mutex.Lock, Multi.Lock and Redlock.Lock.
	Lock(ctx context.Context) (*Lease, error)
	// TryLock asks once. It returns ErrNotAcquired if another owner stands in the way; else
	// as Lock.
	TryLock(ctx context.Context) (*Lease, error)
}

// Result is the outcome of LockAsync: a lease or an error, never both.
type Result struct {
	Lease *Lease
	Err   error
}

// Do locks l, calls fn with a context that ends when the lease ends, and unlocks,
// also if fn panics. If the lock is not granted, fn is not called. fn may unlock the lease itself.
//
// fn's own error comes first in the result. Joined to it is what Do knows of the lease:
//   - [ErrLeaseLost] or [ErrMaxHold] if the lease ended while fn ran: what fn did may have
//     overlapped with another holder. [ErrClosed] if Manager.Close ended it.
//   - [ErrNotReleased], a *[ReleaseError], if Redis has not confirmed the release: what fn did was
//     protected, and the lock is freed in the background or by its TTL, see [Lease.Unlock].
//
// So an [ErrUnavailable] that fn did not return, and to which neither ErrLeaseLost nor
// ErrMaxHold is joined, means that fn was not called: Do may be called again.
//
// Do blocks for as long as Lock, fn and Unlock take. ctx bounds all of it, since fn's context
// derives from it: to bound the wait alone, call Lock with a context of its own.
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
	defer func() {
		var unlockErr error
		if lease.Err() != ErrReleased {
			unlockErr = lease.Unlock(ctx)
		} else if unlockErr = lease.giveUp(ctx, nil); errors.Is(unlockErr, ErrNotHeld) { // fn did it
			unlockErr = nil
		}
		if unlockErr != nil && unprotected(unlockErr) == nil {
			unlockErr = &ReleaseError{lease.Name(), unlockErr}
		}
		if unlockErr != nil { // else fn's own error is returned as it is
			err = errors.Join(err, unlockErr)
		}
	}()
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

// SyncLocker adapts l to sync.Locker, for code that takes one.
//
// A sync.Locker cannot report errors, so this one panics with them. Its Lock waits
// as Locker.Lock does, which rides out trouble with Redis until ctx is done, and
// panics with its error. Its Unlock panics with ErrNotHeld if nothing is locked, and
// with ErrLeaseLost, ErrMaxHold or ErrClosed if the lock ended early, because the
// section just left was then not protected to its end. It does not panic with
// ErrUnavailable: the lock is freed in the background, or by its TTL.
//
// Give each goroutine one of its own: then each Unlock ends its own Lock. One that is shared
// excludes them as well, unless ctx descends from Lease.Context of a held lease of l: then each Lock re-enters. But it cannot tell who
// calls. Each Unlock ends the latest Lock, and a lease that has ended early comes first: after a
// loss the next Unlock panics, whoever calls it, and the lock stays taken until there were as many
// calls of Unlock as of Lock. If the holder that lost it never calls Unlock, that is for ever.
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
		panic(ErrNotHeld)
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
