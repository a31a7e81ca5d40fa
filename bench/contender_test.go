package bench

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"
)

// Figures of a lock that does not exclude mean nothing.
func TestContendersExclude(t *testing.T) {
	for _, l := range libraries {
		t.Run(l.name, func(t *testing.T) {
			const goroutines, passes = 2, 40
			c := open(t, l)
			var (
				inside section
				wg     sync.WaitGroup
			)
			for range goroutines {
				wg.Go(func() {
					for range passes {
						unlock, err := lock(t.Context(), c, "exclusion")
						if err != nil {
							t.Error(err)
							return
						}
						n := inside.n.Load()
						time.Sleep(100 * time.Microsecond)
						inside.n.Store(n + 1)
						if err := unlock(t.Context()); err != nil {
							t.Error(err)
						}
					}
				})
			}
			wg.Wait()
			if err := inside.check(goroutines * passes); err != nil {
				t.Error(err)
			}
		})
	}
}

// lock does not give up where the contender does: floor cannot wait.
func lock(ctx context.Context, c contender, name string) (func(context.Context) error, error) {
	for {
		unlock, err := c.Lock(ctx, name)
		if !errors.Is(err, errFloorHeld) {
			return unlock, err
		}
		time.Sleep(time.Millisecond)
	}
}

func TestContendersStopWaiting(t *testing.T) {
	for _, l := range libraries {
		t.Run(l.name, func(t *testing.T) {
			holder, waiter := open(t, l), open(t, l)
			unlock, err := holder.Lock(t.Context(), "held")
			if err != nil {
				t.Fatal(err)
			}
			defer unlock(t.Context())
			ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
			defer cancel()
			if _, err := waiter.Lock(ctx, "held"); err == nil {
				t.Error("locked what another client holds")
			}
		})
	}
}

// An overlap must not go unseen.
func TestSectionTellsOverlap(t *testing.T) {
	const passes = 1000
	var (
		inside section
		wg     sync.WaitGroup
	)
	for range 2 {
		wg.Go(func() {
			for range passes {
				inside.pass()
			}
		})
	}
	wg.Wait()
	if err := inside.check(2 * passes); err == nil {
		t.Error("two goroutines without a lock were not noticed")
	}
}

func open(t *testing.T, l library) contender {
	t.Helper()
	c, err := l.open(testServer.address, lease)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}
