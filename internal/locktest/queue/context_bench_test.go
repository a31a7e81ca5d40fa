package queue

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/locktest"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

// BenchmarkContextEnds shows how late the last of many callers is who share a context.
func BenchmarkContextEnds(b *testing.B) {
	many := throng
	if redistest.Quick() {
		many = throng / 10
	}
	for _, kind := range []string{"mutex", "fair", "write", "read"} {
		for _, n := range []int{1, many} {
			b.Run(fmt.Sprintf("%s/%d", kind, n), func(b *testing.B) {
				srv := redistest.Start(b)
				held := locktest.MustLock(b, locktest.ManagerOn(b, srv).FairMutex("a"))
				rw := locktest.MustLock(b, locktest.ManagerOn(b, srv).RWMutex("b"))
				for b.Loop() {
					b.StopTimer()
					m := locktest.ManagerOn(b, srv)
					ctx, cancel := context.WithCancel(context.Background())
					var wg sync.WaitGroup
					late := make([]time.Time, n)
					for i := range n {
						wg.Go(func() {
							var err error
							switch kind {
							case "mutex":
								_, err = m.Mutex("a").Lock(ctx)
							case "fair":
								_, err = m.FairMutex("a").Lock(ctx)
							case "write":
								_, err = m.RWMutex("b").Lock(ctx)
							case "read":
								_, err = m.RWMutex("b").RLock(ctx)
							}
							late[i] = time.Now()
							if err == nil {
								b.Error("granted")
							}
						})
					}
					redistest.Eventually(b, time.Minute, "all wait", func() bool { return m.Stats().Waiting == n })
					if kind == "fair" {
						redistest.Eventually(b, time.Minute, "all stand", func() bool { return srv.Admin().LLen(ctx, queueOfA).Val() == int64(n) })
					}
					b.StartTimer()
					began := time.Now()
					cancel()
					b.ReportMetric(time.Since(began).Seconds()*1e3, "cancel-ms")
					wg.Wait()
					last := began
					for _, at := range late {
						if at.After(last) {
							last = at
						}
					}
					b.ReportMetric(last.Sub(began).Seconds()*1e3, "last-ms")
				}
				locktest.MustUnlock(b, held)
				locktest.MustUnlock(b, rw)
			})
		}
	}
}
