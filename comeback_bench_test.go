package holdfast_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/redistest"
)

// BenchmarkFair_ComeBack shows how many waiters get their places again that have been deleted.
func BenchmarkFair_ComeBack(b *testing.B) {
	for _, n := range []int{1000, 16_000} {
		for _, processes := range []int{1, 4} {
			for _, deleted := range []string{"list", "times", "both"} {
				b.Run(fmt.Sprintf("%s/%d/%d", deleted, n, processes), func(b *testing.B) {
					for b.Loop() {
						b.StopTimer()
						srv := redistest.Start(b)
						rdb, ctx := srv.Admin(), context.Background()
						held := mustLock(b, managerOn(b, srv).FairMutex("a"))
						waiting, cancel := context.WithCancel(ctx)
						all := fairPlaces(waiting, b, srv, n, managersOn(b, srv, processes)...)
						report := watched(b, srv)
						b.StartTimer()
						switch deleted {
						case "list":
							rdb.Del(ctx, queueOfA)
						case "times":
							rdb.Del(ctx, timesOfA)
						default:
							rdb.Del(ctx, queueOfA, timesOfA)
						}
						began := time.Now()
						redistest.Eventually(b, time.Minute, "all stand again", func() bool {
							return rdb.LLen(ctx, queueOfA).Val() == int64(n) && rdb.ZCard(ctx, timesOfA).Val() == int64(n)
						})
						b.ReportMetric(time.Since(began).Seconds(), "back-s")
						report()
						b.StopTimer()
						cancel()
						for _, r := range all {
							<-r
						}
						mustUnlock(b, held)
						b.StartTimer()
					}
				})
			}
		}
	}
}
