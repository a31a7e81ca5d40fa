// Package holdfastgoose has goose (github.com/pressly/goose/v3) apply migrations in one process at a time, by a lock of Holdfast. It
// is for databases that have no session locks, such as SQLite and ClickHouse.
package holdfastgoose

import (
	"context"
	"database/sql"
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
	return &locker{lock: l, turn: make(chan struct{}, 1)}
}

type locker struct {
	lock holdfast.Locker
	turn chan struct{}                  // has one place, taken from Lock to Unlock, even if the lease is lost before
	held atomic.Pointer[holdfast.Lease] // nil: nothing is locked
}

func (l *locker) Lock(ctx context.Context, _ *sql.DB) error {
	select {
	case l.turn <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	lease, err := l.lock.Lock(ctx)
	if err != nil {
		<-l.turn
		return err
	}
	l.held.Store(lease)
	return nil
}

func (l *locker) Unlock(ctx context.Context, _ *sql.DB) (err error) {
	lease := l.held.Swap(nil)
	if lease == nil {
		return holdfast.ErrNotHeld
	}
	defer func() { <-l.turn }()
	lease.UnlockInto(ctx, &err)
	return err
}
