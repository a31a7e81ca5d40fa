package contender

import (
	"context"
	"errors"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

// Figures of a lock that does not exclude mean nothing.
func TestContendersExclude(t *testing.T) {
	srv := redistest.Start(t, redistest.WithoutPassword())
	for _, l := range InGo() {
		t.Run(l.Name, func(t *testing.T) {
			t.Parallel()
			const goroutines, passes = 2, 40
			c := connect(t, l, srv)
			var (
				counted atomic.Int64
				wg      sync.WaitGroup
			)
			for range goroutines {
				wg.Go(func() {
					for range passes {
						unlock, err := lock(t.Context(), c, "exclusion:"+l.Name)
						if err != nil {
							t.Error(err)
							return
						}
						n := counted.Load() // two inside at once lose an increment
						time.Sleep(100 * time.Microsecond)
						counted.Store(n + 1)
						redistest.Check(t, unlock(t.Context()))
					}
				})
			}
			wg.Wait()
			if n := counted.Load(); n != goroutines*passes {
				t.Errorf("%d passes through the section, %d counted", goroutines*passes, n)
			}
		})
	}
}

// lock does not give up where the contender does: floor cannot wait.
func lock(ctx context.Context, c Contender, name string) (func(context.Context) error, error) {
	for {
		unlock, err := c.Lock(ctx, name)
		if !errors.Is(err, errFloorHeld) {
			return unlock, err
		}
		time.Sleep(time.Millisecond)
	}
}

func TestContendersStopWaiting(t *testing.T) {
	srv := redistest.Start(t, redistest.WithoutPassword())
	for _, l := range InGo() {
		t.Run(l.Name, func(t *testing.T) {
			t.Parallel()
			holder, waiter := connect(t, l, srv), connect(t, l, srv)
			name := "held:" + l.Name
			unlock, err := holder.Lock(t.Context(), name)
			redistest.Must(t, err)
			defer unlock(t.Context())
			ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
			defer cancel()
			if _, err := waiter.Lock(ctx, name); err == nil {
				t.Error("locked what another client holds")
			}
		})
	}
}

func TestMain(m *testing.M) { os.Exit(redistest.Main(m, nil)) }

func connect(t *testing.T, l Library, srv *redistest.Server) Contender {
	t.Helper()
	c, err := l.Open(srv.Addr(), holdfast.DefaultLease)
	redistest.Must(t, err)
	t.Cleanup(c.Close)
	return c
}
