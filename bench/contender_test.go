package bench

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"
)

// Figures of a lock that does not exclude mean nothing.
func TestContendersExclude(t *testing.T) {
	for _, l := range inGo() {
		t.Run(l.name, func(t *testing.T) {
			const goroutines, passes = 2, 40
			c := open(t, l)
			var (
				p  = newPage()
				wg sync.WaitGroup
			)
			for range goroutines {
				wg.Go(func() {
					for range passes {
						unlock, err := lock(t.Context(), c, "exclusion")
						if err != nil {
							t.Error(err)
							return
						}
						p.write(100 * time.Microsecond)
						if err := unlock(t.Context()); err != nil {
							t.Error(err)
						}
					}
				})
			}
			wg.Wait()
			if n := p.words[wordCount].Load(); n != goroutines*passes {
				t.Errorf("%d passes through the section, %d counted", goroutines*passes, n)
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
	for _, l := range inGo() {
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

// inGo are the libraries that run in this process.
func inGo() []library {
	return slices.DeleteFunc(slices.Clone(libraries), func(l library) bool { return l.open == nil || l.name == unlocked })
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
