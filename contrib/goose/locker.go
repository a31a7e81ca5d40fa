// Package holdfastgoose has goose (github.com/pressly/goose/v3) apply migrations in one process at a time, by a lock of Holdfast. It
// is for databases that have no session locks, such as SQLite and ClickHouse.
package holdfastgoose

import (
	"context"
	"database/sql"
	"fmt"
	"sync/atomic"

	"github.com/pressly/goose/v3/lock"

	"github.com/holdfast-go/holdfast"
)

// NewLocker returns a locker for goose.WithLocker. Several providers may share it.
//
// Lock waits for l as its own Lock does, through trouble with Redis as well: bound it with [holdfast.WithWait], or with the context
// of the provider's method. Unlock returns
//
//   - [holdfast.ErrLeaseLost] or [holdfast.ErrMaxHold] if the lease ended while goose worked: another process may have applied
//     migrations at the same time.
//   - [holdfast.ErrNotReleased] if Redis has not confirmed the release: the migrations were protected.
//   - [holdfast.ErrNotHeld] without a Lock before it.
//
// The provider's method returns that error together with its own.
func NewLocker(l holdfast.Locker) lock.Locker {
	return &locker{lock: l}
}

type locker struct {
	lock holdfast.Locker
	held atomic.Pointer[hold] // nil: nothing is locked
}

// hold is what stands between a successful Lock and its Unlock, even if the lease is lost before.
type hold struct {
	lease    *holdfast.Lease
	unlocked chan struct{} // closed by Unlock
}

func (l *locker) Lock(ctx context.Context, _ *sql.DB) error {
	for {
		lease, err := l.lock.Lock(ctx)
		if err != nil {
			return err
		}
		if l.held.CompareAndSwap(nil, &hold{lease, make(chan struct{})}) {
			return nil
		}
		_ = lease.Unlock(ctx)
		if before := l.held.Load(); before != nil { // it has lost its lease, and its provider is still at work
			select {
			case <-before.unlocked:
			case <-ctx.Done():
				return fmt.Errorf("%w: %w", holdfast.ErrNotAcquired, context.Cause(ctx))
			}
		}
	}
}

func (l *locker) Unlock(ctx context.Context, _ *sql.DB) (err error) {
	h := l.held.Swap(nil)
	if h == nil {
		return holdfast.ErrNotHeld
	}
	close(h.unlocked)
	h.lease.UnlockInto(ctx, &err)
	return err
}
