// Package holdfasttusd locks the uploads of tusd (github.com/tus/tusd/v2) over many servers, by locks of Holdfast. An upload that moves
// to another server goes on there: a message asks the server that still reads from the old connection to release it.
package holdfasttusd

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/url"
	"sync/atomic"

	"github.com/tus/tusd/v2/pkg/handler"

	"github.com/holdfast-go/holdfast"
)

// New returns a locker for StoreComposer.UseLocker of tusd. Each upload has a [holdfast.Mutex] with [holdfast.WithWanted] and opts. It is
// renewed while a request works on the upload.
//
// All servers that share uploads need a locker on the same Redis. The lock of upload id has the name "tusd:" and id in Holdfast.
// Characters other than letters, digits, "-", "_", "." and "~" are escaped as in the query of a URL, and an id that is longer than 512
// bytes then is replaced by its SHA-256: different uploads never share a lock. If several groups of servers use one Redis, give their
// Managers different prefixes with [holdfast.WithNameMapper].
//
// Lock waits until its context ends, which tusd ends after Config.AcquireLockTimeout. It calls requestUnlock once: when another request
// of any server waits for the upload, or when the lease ends before Unlock, so that tusd stops reading the request's body. Lock returns
//
//   - [handler.ErrLockTimeout] if the context or [holdfast.WithWait] ended first. It wraps [holdfast.ErrNotAcquired], or
//     [holdfast.ErrUnavailable] if Redis did not answer.
//   - [handler.ErrServerShutdown] after Manager.Close. It wraps [holdfast.ErrClosed].
//   - what [holdfast.Mutex.Lock] returns otherwise.
//
// Unlock returns, and tusd ignores,
//
//   - [holdfast.ErrLeaseLost] or [holdfast.ErrMaxHold] if the lease ended before: another request may have worked at the same time.
//   - [holdfast.ErrNotReleased] if Redis has not confirmed the release: the request was protected, and the lock expires.
//   - [holdfast.ErrNotHeld] without a Lock before it.
func New(m *holdfast.Manager, opts ...holdfast.LockOption) handler.Locker {
	return locker{m, append([]holdfast.LockOption{holdfast.WithWanted()}, opts...)}
}

type locker struct {
	m    *holdfast.Manager
	opts []holdfast.LockOption
}

func (l locker) NewLock(id string) (handler.Lock, error) {
	return &lock{mutex: l.m.Mutex(lockName(id), l.opts...)}, nil
}

// lock is for one request, as tusd uses it.
type lock struct {
	mutex *holdfast.Mutex
	held  atomic.Pointer[holdfast.Lease] // nil: it is not locked
}

func (l *lock) Lock(ctx context.Context, requestUnlock func()) error {
	lease, err := l.mutex.Lock(ctx)
	switch {
	case err == nil:
	case errors.Is(err, holdfast.ErrClosed):
		return fmt.Errorf("%w: %w", handler.ErrServerShutdown, err)
	case errors.Is(err, holdfast.ErrNotAcquired), ctx.Err() != nil:
		return fmt.Errorf("%w: %w", handler.ErrLockTimeout, err)
	default:
		return err
	}
	l.held.Store(lease)
	go func() {
		select {
		case <-lease.Wanted():
		case <-lease.Done():
		}
		if !errors.Is(lease.Err(), holdfast.ErrReleased) {
			requestUnlock()
		}
	}()
	return nil
}

func (l *lock) Unlock() (err error) {
	lease := l.held.Swap(nil)
	if lease == nil {
		return holdfast.ErrNotHeld
	}
	lease.UnlockInto(context.Background(), &err)
	return err
}

const (
	prefix = "tusd:"
	// maxID is the length of an escaped id that is kept. It leaves a name mapper half of what Holdfast allows.
	maxID = 512
)

// lockName is the name that the lock of an upload has.
func lockName(id string) string {
	escaped := url.QueryEscape(id)
	if len(escaped) > maxID {
		escaped = fmt.Sprintf("sha256:%x", sha256.Sum256([]byte(id))) // an escaped id has no colon
	}
	return prefix + escaped
}
