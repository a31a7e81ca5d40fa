package topology

import (
	"fmt"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/locktest"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

// publishModes are the modes that a cluster is tested with. PublishAuto is sharded where the servers know that.
func publishModes(c *redistest.Cluster) []holdfast.PublishMode {
	if !sharded(c) {
		return []holdfast.PublishMode{holdfast.PublishClassic, holdfast.PublishAuto}
	}
	return []holdfast.PublishMode{holdfast.PublishClassic, holdfast.PublishSharded, holdfast.PublishAuto}
}

func sharded(c *redistest.Cluster) bool { return c.Nodes()[0].Sharded() }

// foreigner acts as Redisson does in a cluster: it takes locks, releases them, and
// subscribes.
type foreigner struct {
	*testing.T
	c       *redistest.Cluster
	sharded bool
}

func newForeigner(t *testing.T, c *redistest.Cluster, mode holdfast.PublishMode) foreigner {
	return foreigner{t, c, mode != holdfast.PublishClassic && sharded(c)}
}

func (f foreigner) lock(name string) {
	f.Helper()
	const lock = "redis.call('hset', KEYS[1], ARGV[1], 1) return redis.call('pexpire', KEYS[1], 60000)"
	redistest.Must(f, f.c.Owner(name).Admin().Eval(within(f.T), lock, []string{name}, "00000000-0000-0000-0000-000000000000:1").Err())
}

// unlock returns when it began.
func (f foreigner) unlock(name string) time.Time {
	f.Helper()
	publish := "publish"
	if f.sharded {
		publish = "spublish"
	}
	const release = "redis.call('del', KEYS[1]) return redis.call(ARGV[1], KEYS[2], '0')"
	node, start := f.c.Owner(name).Admin(), time.Now()
	redistest.Must(f, node.Eval(within(f.T), release, []string{name, locktest.Channel(name)}, publish).Err())
	return start
}

// listeners counts who hears a release of name now.
func (f foreigner) listeners(name string) (n int64) {
	f.Helper()
	ctx, channel := within(f.T), locktest.Channel(name)
	if f.sharded {
		return f.c.Owner(name).Admin().PubSubShardNumSub(ctx, channel).Val()[channel]
	}
	for _, node := range f.c.Nodes() {
		n += node.Admin().PubSubNumSub(ctx, channel).Val()[channel] // 0 from a dead one
	}
	return n
}

// awaitListeners waits until n hear a release of name.
func (f foreigner) awaitListeners(name string, n int64) {
	f.Helper()
	redistest.Eventually(f.T, patience, fmt.Sprintf("%d listeners of %s", n, name), func() bool { return f.listeners(name) == n })
}

// unpolled keeps waiters from finding out anything but by messages, and locks from ending before.
var unpolled = []holdfast.Option{
	holdfast.WithLease(time.Hour), holdfast.WithPollInterval(time.Minute), holdfast.WithFairPatience(10 * time.Minute),
}

// wait makes m wait for the lock until it has it.
func wait(t *testing.T, m *holdfast.Manager, name string) <-chan *holdfast.Lease {
	got := make(chan *holdfast.Lease, 1)
	go func() { got <- locktest.MustLock(t, m.Mutex(name)) }()
	return got
}

// wantPrompt fails if it took long from a release to the grant. A waiter that is not woken
// polls after at least 48 s.
func wantPrompt(t *testing.T, released time.Time) {
	t.Helper()
	d := time.Since(released)
	t.Logf("woken after %v", d)
	redistest.WantMost(t, d, 40*time.Second, "woken after %v")
}
