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
