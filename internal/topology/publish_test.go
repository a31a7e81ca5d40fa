package topology

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/locktest"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

// publishModes are the modes that a cluster is tested with.
var publishModes = []holdfast.PublishMode{
	holdfast.PublishClassic,
}

// New refuses sharded messages as long as there are none. When that ends, the mode
// belongs into publishModes.
func TestPublish_AllModesAreTested(t *testing.T) {
	for _, mode := range []holdfast.PublishMode{holdfast.PublishClassic, holdfast.PublishSharded} {
		tested := false
		for _, m := range publishModes {
			tested = tested || m == mode
		}
		rdb := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{"127.0.0.1:1"}})
		defer rdb.Close()
		m, err := holdfast.New(rdb, holdfast.WithPublishMode(mode))
		if err == nil {
			defer m.Close(context.Background())
		}
		if tested != (err == nil) || err != nil && !errors.Is(err, holdfast.ErrInvalidOption) {
			t.Errorf("%v: tested = %t, New: %v", mode, tested, err)
		}
	}
}

// AC-54. A peer that is none of ours, as Redisson in a cluster, releases and listens.
func TestPublish_PeersHearEachOther(t *testing.T) {
	t.Parallel()
	c := redistest.StartCluster(t)
	raw := c.Client(t)
	channel := locktest.Channel(name)
	for _, mode := range publishModes {
		t.Run(mode.String(), func(t *testing.T) {
			ctx := within(t)
			m := clients(t, c, 1, holdfast.WithPublishMode(mode))[0]
			publish, subscribe := "publish", raw.Subscribe
			if mode == holdfast.PublishSharded {
				publish, subscribe = "spublish", raw.SSubscribe
			}

			// Theirs wakes ours.
			if err := raw.HSet(ctx, name, "00000000-0000-0000-0000-000000000000:1", 1).Err(); err != nil {
				t.Fatal(err)
			}
			raw.PExpire(ctx, name, time.Minute)
			got := make(chan *holdfast.Lease, 1)
			go func() { got <- mustLock(t, m.Mutex(name)) }()
			eventually(t, "subscribed", func() bool { return m.Stats().Subscriptions == 1 })
			polls := m.Stats().Polls
			start := time.Now()
			const release = "redis.call('del', KEYS[1]) return redis.call(ARGV[1], KEYS[2], '0')"
			if err := raw.Eval(ctx, release, []string{name, channel}, publish).Err(); err != nil {
				t.Fatal(err)
			}
			lease := <-got
			d := time.Since(start)
			t.Logf("ours woke after %v", d)
			if d > 50*time.Millisecond*slack && m.Stats().Polls > polls {
				t.Errorf("ours woke after %v, by polling", d)
			}

			// Ours wakes theirs.
			sub := subscribe(ctx, channel)
			defer sub.Close()
			if _, err := sub.ReceiveTimeout(ctx, patience); err != nil { // the confirmation
				t.Fatal(err)
			}
			mustUnlock(t, lease)
			msg, err := sub.ReceiveMessage(ctx)
			if err != nil || msg.Payload != "0" {
				t.Errorf("theirs received %v, %v", msg, err)
			}
		})
	}
}
