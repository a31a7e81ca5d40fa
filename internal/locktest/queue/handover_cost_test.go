package queue

import (
	"context"
	"math"
	"regexp"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/locktest"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

// The length of the queue costs nothing: the server's time for a hand-over with 10,
// 1,000 and 10,000 fair waiters. That time has in it what else the machine did meanwhile, of which
// there is not more with a long queue each time.
func TestCost_HandOverDoesNotGrowWithTheQueue(t *testing.T) {
	for range 3 {
		if few := handOverCost(t, 10); handOverCost(t, 1000) < 2*few && handOverCost(t, 10_000) < 2*few {
			return
		}
	}
	t.Error("it grows")
}

// handOverCost is for how many microseconds the server is busy with a hand-over, where so many wait.
func handOverCost(t *testing.T, waiters int) float64 {
	t.Helper()
	const rounds, windows = 100, 9
	reach := func(ok func() bool) {
		t.Helper()
		redistest.Eventually(t, time.Minute, "the queue moves", ok)
	}
	srv := redistest.Start(t)
	// Keeping places is not a part of it: it depends on time, and on the process.
	crowd, err := holdfast.New(srv.Client(t), holdfast.WithFairPatience(2*time.Minute), holdfast.WithPollInterval(time.Hour))
	redistest.Must(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	held := locktest.Got(t, crowd.FairMutex("queue").Lock, ctx)
	var turns atomic.Int64
	var wg sync.WaitGroup
	for range waiters {
		wg.Go(func() {
			for { // the caller that had it comes again, so that the queue stays as long as it is
				l, err := crowd.FairMutex("queue").Lock(ctx)
				if err != nil {
					return
				}
				turns.Add(1)
				_ = l.Unlock(context.Background())
			}
		})
	}
	reach(func() bool {
		return srv.Admin().LLen(ctx, "redisson_lock_queue:{queue}").Val() == int64(waiters)
	})
	locktest.MustUnlock(t, held)
	reach(func() bool { return turns.Load() > 50 }) // scripts are loaded, caches warm
	least := math.Inf(1)
	for range windows {
		srv.ResetStats()
		before := turns.Load()
		reach(func() bool { return turns.Load() > before+rounds })
		least = min(least, scriptTime(t, srv)/float64(turns.Load()-before))
	}
	t.Logf("%6d waiters: %.1f µs of the server for a hand-over", waiters, least)
	cancel()
	wg.Wait()
	_ = crowd.Close(context.Background()) // 10,000 leave at a time, and it waits for a second only
	return least
}

var evalStat = regexp.MustCompile(`cmdstat_eval(?:sha)?:calls=\d+,usec=(\d+)`)

// scriptTime returns for how many microseconds scripts ran since ResetStats.
func scriptTime(t *testing.T, srv *redistest.Server) (usec float64) {
	info, err := srv.Admin().Info(context.Background(), "commandstats").Result()
	redistest.Must(t, err)
	for _, m := range evalStat.FindAllStringSubmatch(info, -1) {
		u, _ := strconv.ParseFloat(m[1], 64)
		usec += u
	}
	return usec
}
