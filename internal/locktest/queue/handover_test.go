package queue

import (
	"context"
	"fmt"
	"math"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"golang.org/x/sync/errgroup"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/locktest"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

// AC-50: fifty processes with one waiter each. There is no herd.
func TestHandover_FiftyProcesses(t *testing.T) {
	redistest.OnServer(t, func(t *testing.T, srv *redistest.Server) {
		const processes = 50
		held := locktest.MustLock(t, locktest.ManagerOn(t, srv).Mutex("fifty"))
		var all []func() *holdfast.Lease
		for range processes {
			all = append(all, locktest.Waits(t, locktest.ManagerOn(t, srv).Mutex("fifty")))
		}
		redistest.Eventually(t, locktest.Patience, "all stand in the queue, and hear", func() bool {
			places := srv.Admin().ZRangeWithScores(t.Context(), "redisson_lock_timeout:{fifty}", 0, -1).Val()
			deaf := func(z redis.Z) bool { return z.Score != math.Trunc(z.Score) } // asks once more when it hears
			return len(places) == processes && !slices.ContainsFunc(places, deaf)
		})
		srv.ResetStats()
		start := time.Now()
		locktest.MustUnlock(t, held)
		var served sync.WaitGroup
		for _, got := range all {
			served.Go(func() { locktest.MustUnlock(t, got()) })
		}
		served.Wait()
		calls := srv.CommandCalls("evalsha", "eval") // the acquires were before
		t.Logf("%d processes in %v, %.2f commands for each", processes, time.Since(start), float64(calls)/processes)
		if calls > 8*processes { // two, and polls on a slow machine; of a herd it would be half of all of them
			t.Errorf("%d commands", calls)
		}
		if d := time.Since(start); d > processes*300*time.Millisecond { // by poll it would be a second
			t.Errorf("a hand-over takes %v", d/processes)
		}
	})
}

// Whether plain waiters of Redisson listen is asked after every 16th grant in a row, not at each
// one from then on.
func TestHandover_LooksForRedissonNowAndThen(t *testing.T) {
	redistest.InWorlds(t, func(t *testing.T) {
		for queue, of := range map[string]func(*holdfast.Manager) holdfast.Locker{
			"redisson_lock_queue:{a}": func(m *holdfast.Manager) holdfast.Locker { return m.FairMutex("a") },
			"holdfast_rw_queue:{a}":   func(m *holdfast.Manager) holdfast.Locker { return m.RWMutex("a") },
		} {
			srv := redistest.Start(t)
			lease := toAndFro(t, srv, of, queue, 60)
			// Each grant asks for the listeners of the inbox.
			if n := srv.CommandCalls("pubsub") - 60; n < 1 || n > 12 { // five, and one for each grant that is found by asking while the inbox is not heard
				t.Errorf("%s: asked %d times in 60 hand-overs", queue, n)
			}
			locktest.MustUnlock(t, lease)
		}
	})
}

// toAndFro hands a lock over so often between two processes, one of which always waits, and
// returns the last lease.
func toAndFro(t *testing.T, srv *redistest.Server, of func(*holdfast.Manager) holdfast.Locker, queue string, times int) *holdfast.Lease {
	t.Helper()
	locks := []holdfast.Locker{of(locktest.ManagerOn(t, srv)), of(locktest.ManagerOn(t, srv))}
	lease := locktest.MustLock(t, locks[0])
	for i := range times {
		next := locktest.Waits(t, locks[(i+1)%2])
		locktest.Queued(t, srv, queue, 1)
		locktest.MustUnlock(t, lease)
		lease = next()
	}
	return lease
}

// The question whether another process waits is lost with its connection: it is asked again over
// another one, long before the client notices.
func TestHandoff_QuestionIsLost(t *testing.T) {
	srv := redistest.Start(t)
	p := srv.Proxy(t)
	m := locktest.ManagerAsIs(t, p.ClientWith(t, func(o *redis.Options) { o.ReadTimeout = time.Minute }))
	p.SwallowReply(locktest.ScriptOn("redisson_lock_queue:{a}", "demand"), 1)
	ctx, stop := context.WithCancel(t.Context())
	var crowd sync.WaitGroup
	for range 4 {
		crowd.Go(func() {
			for {
				l, err := m.Mutex("a").Lock(ctx)
				if err != nil {
					return
				}
				for m.Stats().Waiting == 0 && ctx.Err() == nil { // so that it is always passed on
					runtime.Gosched()
				}
				_ = l.Unlock(ctx)
			}
		})
	}
	redistest.Eventually(t, locktest.Patience, "the lock is passed on", func() bool { return m.Stats().HandedOff > 100 })
	locktest.MustUnlock(t, locktest.MustLock(t, locktest.ManagerOn(t, srv).Mutex("a")))
	stop()
	crowd.Wait()
}

// A mutex and a fair lock of one name have one queue. The answer to the release of the one tells its process of the grant of the other.
func TestHandover_ToTheOtherKindOfTheName(t *testing.T) {
	redistest.OnServer(t, func(t *testing.T, srv *redistest.Server) {
		m := locktest.ManagerOn(t, srv, append(locktest.Unasked, holdfast.WithLease(time.Hour))...)
		held := locktest.MustLock(t, m.Mutex("a"))
		got := locktest.Waits(t, m.FairMutex("a"))
		redistest.Eventually(t, locktest.Patience, "it hears", func() bool { return locktest.Hears(t, srv, m) })
		locktest.MustUnlock(t, held)
		locktest.MustUnlock(t, got())
	})
}

// A grant is told while a request for the same claim is under way whose caller has left. It
// counts for the next caller, who takes that request over, although the answer, which is
// older, says that the lock is taken: nothing more is asked.
func TestHandover_GrantToWhoTakesTheRequestOver(t *testing.T) {
	redistest.OnServer(t, func(t *testing.T, srv *redistest.Server) {
		m, proxy := locktest.ManagerVia(t, srv, holdfast.WithPollInterval(500*time.Millisecond))
		held := locktest.MustLock(t, locktest.ManagerOn(t, srv).Mutex("a"))
		ctx, leave := context.WithCancel(t.Context())
		left := m.Mutex("a").LockAsync(ctx)
		redistest.Eventually(t, locktest.Patience, "the inbox is heard, and that has been asked about", func() bool {
			return len(srv.Admin().PubSubChannels(t.Context(), "holdfast_inbox:*").Val()) == 1 && locktest.Pending(m) == 0
		})
		gate := proxy.HoldFirstReply(locktest.ScriptOn("a", "lock_acquire"))
		proxy.Refuse(true) // else a new connection shows that the old one is dead, and the claim is given up with its caller
		gate.Wait(t)       // of a poll
		leave()
		locktest.WantErr(t, (<-left).Err, holdfast.ErrNotAcquired, nil)
		before, told := m.Stats().Wakeups, time.Now()
		locktest.MustUnlock(t, held)
		redistest.Eventually(t, locktest.Patience, "the grant is told", func() bool { return m.Stats().Wakeups > before })
		next := locktest.Waits(t, m.Mutex("a"))
		redistest.Eventually(t, locktest.Patience, "the next one waits", func() bool { return m.Stats().Waiting == 1 })
		proxy.Record()
		gate.Release()
		lease := next()
		proxy.Refuse(false)
		if n := proxy.Count(locktest.ScriptOn("a", "lock_acquire")); n != 0 && time.Since(told) < 400*time.Millisecond { // a grant that is told late is asked about
			t.Errorf("asked %d times", n)
		}
		locktest.MustUnlock(t, lease)
	})
}

// With many locks hundreds of grants overtake the replies of a pipeline that tell of the places in
// the queues. None is forgotten: no waiter here finds a grant by asking.
func TestHandover_ManyNames(t *testing.T) {
	redistest.OnServer(t, func(t *testing.T, srv *redistest.Server) {
		const names, rounds = 1000, 20
		group, ctx := errgroup.WithContext(t.Context())
		ctx, cancel := context.WithTimeout(ctx, time.Minute)
		defer cancel()
		for range 2 {
			m := locktest.ManagerOn(t, srv, append(locktest.Unasked, holdfast.WithLease(time.Hour))...)
			for i := range names {
				l := m.Mutex(fmt.Sprint(i))
				group.Go(func() error {
					for range rounds {
						lease, err := l.Lock(ctx)
						if err != nil {
							return err
						}
						if err := locktest.Unlock(lease); err != nil {
							return err
						}
					}
					return nil
				})
			}
		}
		redistest.Check(t, group.Wait())
	})
}

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
