package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast"
)

// work is the load: what both services do to the locks that they share, until ctx is done.
func work(ctx context.Context, log *slog.Logger, locks *holdfast.Manager) {
	var wg sync.WaitGroup
	loop := func(label string, pause time.Duration, once func(context.Context) error) {
		ctx := holdfast.WithLabel(ctx, label)
		wg.Go(func() {
			for sleep(ctx, time.Duration(rand.Int64N(int64(2*pause)))) {
				err := once(ctx)
				if err != nil && !errors.Is(err, holdfast.ErrNotAcquired) && ctx.Err() == nil {
					log.Warn(label+" failed", "error", err)
				}
			}
		})
	}
	hold := func(l holdfast.Locker, d time.Duration) func(context.Context) error {
		return func(ctx context.Context) error {
			return holdfast.Do(ctx, l, func(ctx context.Context, _ *holdfast.Lease) error {
				sleep(ctx, d)
				return context.Cause(ctx)
			})
		}
	}
	for range 8 { // many callers, few items: they wait for each other
		loop("checkout", 20*time.Millisecond, func(ctx context.Context) error {
			item := fmt.Sprintf("stock:%d", rand.IntN(5))
			return hold(locks.Mutex(item), 5*time.Millisecond)(ctx)
		})
	}
	catalogue := locks.RWMutex("catalogue")
	for range 4 {
		loop("browse", 50*time.Millisecond, hold(catalogue.RLocker(), 10*time.Millisecond))
	}
	loop("price update", 2*time.Second, hold(catalogue, 100*time.Millisecond))
	for range 3 {
		loop("invoice", 100*time.Millisecond, hold(locks.FairMutex("invoices"), 20*time.Millisecond))
	}
	vans := locks.Semaphore("vans", 4) // over both services
	for range 3 {
		loop("delivery", 200*time.Millisecond, hold(vans.Locker(1), 300*time.Millisecond))
	}
	loop("report", time.Second, func(ctx context.Context) error { // one service at a time; the other does not wait
		lease, err := locks.Mutex("report").TryLock(ctx)
		if err != nil {
			return err
		}
		sleep(ctx, 3*time.Second)
		return lease.Unlock(ctx)
	})
	loop("stocktaking", 5*time.Second, hold(locks.Mutex("stock:0"), 2*time.Second)) // now and then one holds a busy lock for long
	loop("mishap", 20*time.Second, func(ctx context.Context) error {                // and an operator frees a lock that is held
		_, err := locks.ForceUnlock(ctx, "report")
		return err
	})
	wg.Wait()
}

// sleep reports whether ctx has not ended before.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
