package queue

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/locktest"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

// These benchmarks show what many of one kind at one time cost: for how long one request keeps the
// server from all others, and how late the last caller is told. Most of their figures are the server's own,
// which a busy machine changes less.

const throng = 10_000

// watched returns a function that reports what the scripts cost since: the longest of all commands, and all together.
func watched(b *testing.B, srv *redistest.Server) func() {
	ctx := context.Background()
	rdb := srv.Admin()
	rdb.ConfigSet(ctx, "slowlog-log-slower-than", "0")
	rdb.ConfigSet(ctx, "slowlog-max-len", "10000")
	rdb.SlowLogReset(ctx)
	srv.ResetStats()
	return func() {
		b.Helper()
		var all []time.Duration
		for _, l := range rdb.SlowLogGet(ctx, -1).Val() {
			if l.Args[0] == "evalsha" || l.Args[0] == "eval" {
				all = append(all, l.Duration)
			}
		}
		b.ReportMetric(quantile(append(all, 0), .5)*1e3, "script-ms")
		b.ReportMetric(quantile(append(all, 0), 1)*1e3, "longest-script-ms")
		b.ReportMetric(serverTime(b, srv)/1e3, "server-ms")
	}
}

// serverTime is for how many microseconds the server has run scripts since ResetStats.
func serverTime(b *testing.B, srv *redistest.Server) (all float64) {
	info := srv.Admin().InfoMap(context.Background(), "commandstats").Item("Commandstats", "cmdstat_evalsha")
	var calls int
	if _, err := fmt.Sscanf(info, "calls=%d,usec=%f", &calls, &all); err != nil && info != "" {
		b.Fatal(info, err)
	}
	return all
}

// fairPlaces has n callers of each of some managers wait for the fair lock a.
func fairPlaces(ctx context.Context, b *testing.B, srv *redistest.Server, n int, managers ...*holdfast.Manager) (all []<-chan holdfast.Result) {
	for i := range n {
		all = append(all, managers[i%len(managers)].FairMutex("a").LockAsync(ctx))
	}
	redistest.Eventually(b, time.Minute, "all stand in the queue", func() bool {
		return srv.Admin().LLen(context.Background(), queueOfA).Val() == int64(n)
	})
	return all
}

func managersOn(b *testing.B, srv *redistest.Server, n int) (all []*holdfast.Manager) {
	for range n {
		all = append(all, locktest.ManagerOn(b, srv))
	}
	return all
}

func BenchmarkFair_LeaveTogether(b *testing.B) {
	n := multitude()
	for _, processes := range []int{1, 4} {
		for _, way := range []string{"cancel", "close", "half", "tail"} {
			b.Run(fmt.Sprintf("%s/%d", way, processes), func(b *testing.B) {
				for b.Loop() {
					b.StopTimer()
					srv := redistest.Start(b)
					held := locktest.MustLock(b, locktest.ManagerOn(b, srv).FairMutex("a"))
					managers := managersOn(b, srv, processes)
					ctx, cancel := context.WithCancel(context.Background())
					var all []<-chan holdfast.Result
					left := int64(0)
					if way == "tail" { // the older half stays
						left = int64(n / 2)
						fairPlaces(context.Background(), b, srv, n/2, locktest.ManagerOn(b, srv))
						for i := range n / 2 {
							all = append(all, managers[i%len(managers)].FairMutex("a").LockAsync(ctx))
						}
						redistest.Eventually(b, time.Minute, "all stand in the queue", func() bool { return srv.Admin().LLen(ctx, queueOfA).Val() == int64(n) })
					} else if way == "half" { // every second one stays
						stay := locktest.ManagerOn(b, srv)
						left = int64(n / 2)
						var with []*holdfast.Manager
						for _, m := range managers {
							with = append(with, m, stay)
						}
						for i := range n {
							c := ctx
							if i%2 == 1 {
								c = context.Background()
							}
							r := with[i%len(with)].FairMutex("a").LockAsync(c)
							if i%2 == 0 {
								all = append(all, r)
							}
							if i%100 == 0 {
								redistest.Eventually(b, time.Minute, "it stands", func() bool { return srv.Admin().LLen(ctx, queueOfA).Val() > int64(i-100) })
							}
						}
						redistest.Eventually(b, time.Minute, "all stand in the queue", func() bool { return srv.Admin().LLen(ctx, queueOfA).Val() == int64(n) })
					} else {
						all = fairPlaces(ctx, b, srv, n, managers...)
					}
					report := watched(b, srv)
					b.StartTimer()
					began := time.Now()
					if way == "close" {
						var wg sync.WaitGroup
						for _, m := range managers {
							wg.Go(func() {
								if err := m.Close(context.Background()); err != nil {
									b.Error(err)
								}
							})
						}
						wg.Wait()
					} else {
						cancel()
					}
					for _, r := range all {
						<-r
					}
					redistest.Eventually(b, time.Minute, "all have left", func() bool { return srv.Admin().LLen(context.Background(), queueOfA).Val() == left })
					b.ReportMetric(time.Since(began).Seconds()*1e3, "empty-ms")
					report()
					b.StopTimer()
					cancel()
					locktest.MustUnlock(b, held)
					b.StartTimer()
				}
			})
		}
	}
}

func BenchmarkDeadHeads(b *testing.B) {
	for _, kind := range []string{"mutex", "fair", "write", "read"} {
		for _, over := range []string{"over", "kept"} {
			b.Run(kind+"/"+over, func(b *testing.B) {
				for b.Loop() {
					b.StopTimer()
					srv := redistest.Start(b)
					lock := func(m *holdfast.Manager) holdfast.Locker {
						switch kind {
						case "mutex":
							return m.Mutex("a")
						case "fair":
							return m.FairMutex("a")
						case "read":
							return m.RWMutex("a").RLocker()
						}
						return m.RWMutex("a")
					}
					first := lock(locktest.ManagerOn(b, srv))
					if kind == "read" {
						first = locktest.ManagerOn(b, srv).RWMutex("a")
					}
					m := locktest.ManagerOn(b, srv)
					crowd := deadOf(kind == "write" || kind == "read", over == "kept")
					held := locktest.MustLock(b, first)
					crowd.stand(b, srv, multitude())
					report := watched(b, srv)
					got := make(chan *holdfast.Lease)
					go func() { got <- locktest.MustLock(b, lock(m)) }()
					redistest.Eventually(b, time.Minute, "it stands", func() bool {
						return !strings.HasPrefix(srv.Admin().LIndex(context.Background(), crowd.queue, -1).Val(), "hf-11111111")
					})
					b.StartTimer()
					began := time.Now()
					locktest.MustUnlock(b, held)
					b.ReportMetric(time.Since(began).Seconds()*1e3, "unlock-ms")
					held = <-got
					b.ReportMetric(time.Since(began).Seconds()*1e3, "granted-ms")
					report()
					locktest.MustUnlock(b, held)
				}
			})
		}
	}
}

func BenchmarkClose_Held(b *testing.B) {
	for b.Loop() {
		b.StopTimer()
		srv := redistest.Start(b)
		m := locktest.ManagerOn(b, srv)
		held(b, m, throng)
		report := watched(b, srv)
		b.StartTimer()
		began := time.Now()
		err := m.Close(context.Background())
		b.ReportMetric(time.Since(began).Seconds()*1e3, "close-ms")
		report()
		if err != nil {
			b.Log(err)
		}
	}
}

// held has m hold n locks.
func held(b *testing.B, m *holdfast.Manager, n int, opts ...holdfast.LockOption) (all []*holdfast.Lease) {
	var results []<-chan holdfast.Result
	for i := range n {
		results = append(results, m.Mutex(fmt.Sprint("a", i), opts...).LockAsync(context.Background()))
	}
	for _, r := range results {
		got := <-r
		if got.Err != nil {
			b.Fatal(got.Err)
		}
		all = append(all, got.Lease)
	}
	return all
}

// BenchmarkExpire_Together shows how late the last of many leases ends that have the same deadline.
func BenchmarkExpire_Together(b *testing.B) {
	for b.Loop() {
		b.StopTimer()
		srv := redistest.Start(b)
		m := locktest.ManagerOn(b, srv)
		leases := held(b, m, throng, holdfast.WithLease(time.Second))
		srv.Pause()
		b.StartTimer()
		var worst time.Duration
		var mu sync.Mutex
		var wg sync.WaitGroup
		for _, l := range leases {
			wg.Go(func() {
				<-l.Done()
				late := time.Since(l.Deadline())
				mu.Lock()
				worst = max(worst, late)
				mu.Unlock()
			})
		}
		wg.Wait()
		b.ReportMetric(worst.Seconds()*1e3, "late-ms")
		srv.Resume()
	}
}

// BenchmarkSubscribe_ManyNames has Redisson hold many names that are waited for.
func BenchmarkSubscribe_ManyNames(b *testing.B) {
	for b.Loop() {
		b.StopTimer()
		ctx := context.Background()
		srv := redistest.Start(b)
		p := srv.Admin().Pipeline()
		for i := range throng {
			name := fmt.Sprint("a", i)
			p.HSet(ctx, name, "b0dc7e0a-0000-4000-8000-000000000000:1", "1")
			p.PExpire(ctx, name, time.Hour)
		}
		if _, err := p.Exec(ctx); err != nil {
			b.Fatal(err)
		}
		m := locktest.ManagerOn(b, srv)
		waiting, cancel := context.WithCancel(ctx)
		report := watched(b, srv)
		b.StartTimer()
		began := time.Now()
		var results []<-chan holdfast.Result
		for i := range throng {
			results = append(results, m.Mutex(fmt.Sprint("a", i)).LockAsync(waiting))
		}
		channels := func() int { return len(srv.Admin().PubSubChannels(ctx, "redisson_lock__channel:*").Val()) }
		redistest.Eventually(b, time.Minute, "all are subscribed", func() bool { return channels() == throng })
		b.ReportMetric(time.Since(began).Seconds()*1e3, "subscribed-ms")
		began = time.Now()
		cancel()
		for _, r := range results {
			<-r
		}
		b.ReportMetric(time.Since(began).Seconds()*1e3, "told-ms")
		redistest.Eventually(b, time.Minute, "none is subscribed", func() bool { return channels() == 0 })
		b.ReportMetric(time.Since(began).Seconds()*1e3, "unsubscribed-ms")
		report()
	}
}
