package semaphore

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/locktest"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

// P1, P3, P9 in a crowd of callers in several processes, some of which give up.
func TestSemaphore_Crowd(t *testing.T) {
	redistest.InWorlds(t, func(t *testing.T) {
		const permits, processes, callers, rounds = 5, 3, 8, 20
		srv := redistest.Start(t)
		var taken atomic.Int64
		var work sync.WaitGroup
		for p := range processes {
			s := user(t, srv, permits)
			for c := range callers {
				random := rand.New(rand.NewPCG(uint64(p), uint64(c)))
				work.Go(func() {
					for range rounds {
						use(t, s, 1+random.IntN(3), random, &taken, permits)
					}
				})
			}
		}
		work.Wait()
		redistest.Eventually(t, locktest.Patience, "all permits are back", func() bool {
			return srv.Admin().Get(t.Context(), name).Val() == "5" && srv.Admin().Exists(t.Context(), held, queue).Val() == 0
		})
		wantState(t, srv, permits, permits)
	})
}

// use takes n permits, or gives up, and holds them for a moment.
func use(t *testing.T, s *holdfast.Semaphore, n int, random *rand.Rand, taken *atomic.Int64, permits int64) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	if random.IntN(4) == 0 {
		ctx, cancel = context.WithTimeout(ctx, time.Duration(random.IntN(5))*time.Millisecond)
		defer cancel()
	}
	call := s.Acquire
	if random.IntN(4) == 0 {
		call = s.TryAcquire
	}
	l, err := call(ctx, n)
	switch {
	case errors.Is(err, holdfast.ErrNotAcquired), ctx.Err() != nil:
		return
	case err != nil:
		t.Error(err)
		return
	}
	redistest.WantMost(t, taken.Add(int64(n)), permits, "%d permits are taken of %d")
	if random.IntN(2) == 0 {
		time.Sleep(time.Duration(random.IntN(1000)) * time.Microsecond) // holds it
	}
	taken.Add(-int64(n))
	redistest.Check(t, l.Unlock(context.WithoutCancel(ctx)))
}
