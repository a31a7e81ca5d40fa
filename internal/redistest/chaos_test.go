package redistest

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// Whatever the proxy does, a counter is at least the number of increments that
// were confirmed and at most the number that were tried: no request is
// duplicated, and no reply reaches another request.
func TestProxy_ChaosKeepsAccounts(t *testing.T) {
	const workers = 4
	s := Start(t, WithAOF())
	p := s.Proxy(t)
	ctx, stop := context.WithCancel(t.Context())
	var ops, failures atomic.Int64
	var confirmed, tried [workers]int64 // each owned by its worker until wg.Wait
	var wg sync.WaitGroup
	defer wg.Wait()
	defer stop()
	for w := range workers {
		rdb := p.ClientWith(t, func(o *redis.Options) {
			o.MaxRetries, o.DialerRetries = -1, 1
			o.ReadTimeout, o.PoolSize = 40*time.Millisecond, 2
		})
		wg.Go(func() {
			key := fmt.Sprint("n", w)
			for last := int64(0); ctx.Err() == nil; ops.Add(1) {
				tried[w]++
				n, err := rdb.Incr(context.Background(), key).Result()
				if err != nil {
					failures.Add(1)
					continue
				}
				confirmed[w]++
				if n <= last || n > tried[w] {
					t.Errorf("INCR %s = %d after %d at try %d", key, n, last, tried[w])
				}
				last = n
			}
		})
	}
	await := func(counter *atomic.Int64, n int64) {
		t.Helper()
		from := counter.Load()
		Eventually(t, Patience, "workers go on", func() bool { return counter.Load() >= from+n })
	}
	var gate *Gate
	incr := Command("incr")
	for name, fault := range map[string]func(){
		"lose replies":    func() { p.LoseReply(incr, 5); await(&failures, 5) },
		"swallow replies": func() { p.SwallowReply(incr, 2); await(&failures, 2) },
		"lose requests":   func() { p.LoseRequest(incr, 5); await(&failures, 5) },
		"late request":    func() { gate = p.HoldFirstRequest(incr); await(&failures, 1); gate.Release() },
		"late reply":      func() { gate = p.HoldFirstReply(incr); await(&failures, 1); gate.Release() },
		"black hole":      func() { p.BlackHole(true); await(&failures, workers); p.BlackHole(false) },
		"freeze":          func() { p.Freeze(true); await(&failures, workers); p.Freeze(false) },
		"cut":             func() { p.Cut() },
		"refuse":          func() { p.Refuse(true); p.Cut(); await(&failures, workers); p.Refuse(false) },
		"delay":           func() { p.Delay(time.Millisecond, time.Millisecond); await(&ops, 20) },
		"server stopped":  func() { s.Pause(); await(&failures, workers); s.Resume() },
		"server killed":   func() { s.Kill(); await(&failures, workers); s.Restart() },
	} {
		await(&ops, 20)
		t.Log(name)
		fault()
		p.Heal()
	}
	await(&ops, 200)
	stop()
	wg.Wait()
	t.Logf("%d operations, %d of them failed", ops.Load(), failures.Load())
	for w := range workers {
		n, err := strconv.ParseInt(get(t, s, fmt.Sprint("n", w)), 10, 64)
		if err != nil || n < confirmed[w] || n > tried[w] {
			t.Errorf("n%d = %d, %v, want between %d and %d", w, n, err, confirmed[w], tried[w])
		}
	}
}
