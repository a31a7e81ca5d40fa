// Package holdfastcertmagic gives certmagic (github.com/caddyserver/certmagic) the locks of Holdfast: of all processes that serve
// a domain, one obtains or renews its certificate. The certificates stay in the storage that you have.
package holdfastcertmagic

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/url"
	"sync"
	"time"

	"github.com/caddyserver/certmagic"

	"github.com/holdfast-go/holdfast"
)

// Storage is a [certmagic.Storage] whose locks are those of Holdfast. It is also a [certmagic.TryLocker] and a
// [certmagic.LockLeaseRenewer]. All other methods are those of the storage that [Wrap] got.
type Storage struct {
	certmagic.Storage
	m    *holdfast.Manager
	opts []holdfast.LockOption

	mu   sync.Mutex
	held map[string]*hold // guarded by mu; by certmagic's name
}

// hold is what stands between a successful Lock and its Unlock, even if the lease is lost before. It does not change.
type hold struct {
	lease    *holdfast.Lease
	unlocked chan struct{} // closed by Unlock
}

// Wrap returns s with the locks of m. Each lock is a [holdfast.Mutex] with the options, and is renewed from Lock to Unlock.
//
// All processes that share certificates need a Storage on the same Redis. The lock of certmagic's name n has the name
// "certmagic:" and n in Holdfast. Characters other than letters, digits, "-", "_", "." and "~" are escaped as in the query of a
// URL, and a name that is longer than 512 bytes then is replaced by its SHA-256: different names never share a lock.
// If several groups of processes use one Redis, give their Managers different prefixes with [holdfast.WithNameMapper].
func Wrap(s certmagic.Storage, m *holdfast.Manager, opts ...holdfast.LockOption) *Storage {
	return &Storage{Storage: s, m: m, opts: opts, held: make(map[string]*hold)}
}

// String returns that of the storage that [Wrap] got: certmagic logs its storage, whose fields can have passwords.
func (s *Storage) String() string {
	if named, ok := s.Storage.(fmt.Stringer); ok {
		return named.String()
	}
	return fmt.Sprintf("%T", s.Storage)
}

// Lock waits for the lock as [holdfast.Mutex.Lock] does, and returns its errors. It waits through trouble with Redis as well: bound
// it with ctx, or with [holdfast.WithWait]. Callers of one process exclude each other, even if the lease of the first is lost
// while it works.
func (s *Storage) Lock(ctx context.Context, name string) error {
	for {
		lease, err := s.mutex(name).Lock(ctx)
		if err != nil {
			return err
		}
		before := s.keep(name, lease)
		if before == nil {
			return nil
		}
		_ = lease.Unlock(ctx)
		select {
		case <-before.unlocked:
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", holdfast.ErrNotAcquired, context.Cause(ctx))
		}
	}
}

// TryLock makes one attempt. It returns false and no error if the lock is in use, and false and the error of
// [holdfast.Mutex.TryLock] if it cannot say so, such as [holdfast.ErrUnavailable].
func (s *Storage) TryLock(ctx context.Context, name string) (bool, error) {
	lease, err := s.mutex(name).TryLock(ctx)
	switch {
	case errors.Is(err, holdfast.ErrNotAcquired) && ctx.Err() == nil:
		return false, nil
	case err != nil:
		return false, err
	case s.keep(name, lease) != nil:
		_ = lease.Unlock(ctx)
		return false, nil
	}
	return true, nil
}

// Unlock gives up the lock, even if ctx has ended. It returns
//
//   - [holdfast.ErrLeaseLost] or [holdfast.ErrMaxHold] if the lease ended before: another process may have worked at the same time.
//   - [holdfast.ErrNotReleased] if Redis has not confirmed the release: the work was protected, and the lock expires.
//   - [holdfast.ErrNotHeld] if this Storage has not locked the name.
//
// The name can be locked again after each of them. certmagic logs the error.
func (s *Storage) Unlock(ctx context.Context, name string) (err error) {
	s.mu.Lock()
	h := s.held[name]
	delete(s.held, name)
	s.mu.Unlock()
	if h == nil {
		return notHeld(name)
	}
	close(h.unlocked)
	h.lease.UnlockInto(ctx, &err)
	return err
}

// RenewLockLease returns nil if the lock is held, without I/O: Holdfast renews it until Unlock, so the duration has no effect. If
// the lease was lost, RenewLockLease locks again, and waits as [Storage.Lock] does. certmagic calls it at the start of each attempt,
// before it looks whether another process has stored the certificate meanwhile.
//
// It returns [holdfast.ErrNotHeld] if this Storage has not locked the name.
func (s *Storage) RenewLockLease(ctx context.Context, name string, _ time.Duration) error {
	s.mu.Lock()
	h := s.held[name]
	s.mu.Unlock()
	switch {
	case h == nil:
		return notHeld(name)
	case h.lease.Valid():
		return nil
	}
	lease, err := s.mutex(name).Lock(ctx)
	if err != nil {
		return err
	}
	s.mu.Lock()
	unlocked := s.held[name] != h
	if !unlocked {
		s.held[name] = &hold{lease, h.unlocked}
	}
	s.mu.Unlock()
	if unlocked {
		_ = lease.Unlock(ctx)
		return notHeld(name)
	}
	return nil
}

// keep notes what was granted. If an earlier caller has lost its lease and is still at work, keep returns its hold instead.
func (s *Storage) keep(name string, lease *holdfast.Lease) (before *hold) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if before = s.held[name]; before == nil {
		s.held[name] = &hold{lease, make(chan struct{})}
	}
	return before
}

func (s *Storage) mutex(name string) *holdfast.Mutex {
	return s.m.Mutex(lockName(name), s.opts...)
}

const (
	prefix = "certmagic:"
	// maxName is the length of an escaped name that is kept. It leaves a name mapper half of what Holdfast allows.
	maxName = 512
)

// lockName is the name that a lock of certmagic has in Holdfast.
func lockName(name string) string {
	escaped := url.QueryEscape(name)
	if len(escaped) > maxName {
		escaped = fmt.Sprintf("sha256:%x", sha256.Sum256([]byte(name))) // an escaped name has no colon
	}
	return prefix + escaped
}

func notHeld(name string) error {
	return fmt.Errorf("%q is not locked: %w", name, holdfast.ErrNotHeld)
}
