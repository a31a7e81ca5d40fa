package holdfast_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

// A lock of Redisson that has exactly 50 or 250 ms left is held, and not left open for others or offered to them: once
// its release is told, the waiter asks at once, and not when that time is over.
func TestRedisson_HoldsWhateverTimeIsLeft(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	ctx, admin := t.Context(), srv.Admin()
	for _, left := range []string{"50", "250"} {
		next := otherScripts{}
		next.replace(t, srv, "lock_acquire", func(text string) string {
			return strings.Replace(text, "call('pttl', lock), not inbox_of(holder)", left+", not inbox_of(holder)", 1)
		})
		next.replace(t, srv, "rw_acquire", func(text string) string {
			return strings.Replace(text, "redis.call('pttl', lock), o.now, foreign}", left+", o.now, foreign}", 1)
		})
		m := managerWith(t, srv, next, unasked...)
		for kind, c := range map[string]struct {
			of      func(name string) holdfast.Locker
			channel string
			holder  []any
		}{
			"mutex": {func(name string) holdfast.Locker { return m.Mutex(name) }, "redisson_lock__channel", []any{redissons, 1}},
			"fair":  {func(name string) holdfast.Locker { return m.FairMutex(name) }, "redisson_lock__channel", []any{redissons, 1}},
			"write": {func(name string) holdfast.Locker { return m.RWMutex(name) }, "redisson_rwlock", []any{"mode", "write", redissons + ":write", 1}},
			"read":  {func(name string) holdfast.Locker { return m.RWMutex(name).RLocker() }, "redisson_rwlock", []any{"mode", "write", redissons + ":write", 1}},
		} {
			t.Run(kind+" "+left+" ms", func(t *testing.T) {
				fastest := time.Hour
				for round := range 30 { // a machine that stands still now and then does not do so each time
					name := fmt.Sprint(kind, left, round)
					channel := c.channel + ":{" + name + "}"
					admin.HSet(ctx, name, c.holder...)
					admin.PExpire(ctx, name, time.Minute)
					got := waits(t, c.of(name))
					redistest.Eventually(t, patience, "it listens", func() bool {
						return admin.PubSubNumSub(ctx, channel).Val()[channel] == 1 && m.Pending() == 0
					})
					admin.Del(ctx, name)
					start := time.Now()
					admin.Publish(ctx, channel, "0")
					lease := got()
					fastest = min(fastest, time.Since(start))
					mustUnlock(t, lease)
				}
				if fastest > 20*time.Millisecond {
					t.Errorf("the fastest of 30 has noticed after %v", fastest)
				}
			})
		}
	}
}
