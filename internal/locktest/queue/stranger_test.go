package queue

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/locktest"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

// Redisson's fair lock notifies the first waiter on a channel of its own. A caller that has joined the queue while a TryLock was refused is that waiter,
// and hears it.
func TestFair_WhoJoinsBesideATryLockHearsRedisson(t *testing.T) {
	redistest.InFakeTime(t, func(t *testing.T) {
		srv := redistest.Start(t)
		ctx, admin := t.Context(), srv.Admin()
		l := locktest.ManagerOn(t, srv, holdfast.WithPollInterval(time.Hour), holdfast.WithFairPatience(3*time.Hour)).FairMutex("a")
		held, waited := locktest.MustLock(t, locktest.ManagerOn(t, srv).FairMutex("a")), make(chan *holdfast.Lease, 1)
		go func() { waited <- locktest.MustLock(t, l) }()
		redistest.Eventually(t, locktest.Patience, "it waits, and hears its inbox", func() bool {
			return admin.LLen(ctx, "redisson_lock_queue:{a}").Val() == 1 && len(admin.PubSubChannels(ctx, "holdfast_inbox:*").Val()) == 1
		})
		locktest.MustUnlock(t, held)
		locktest.MustUnlock(t, <-waited)
		admin.HSet(ctx, "a", "9f8e7d6c-0000-4000-8000-00000000000f:1", 1)
		admin.PExpire(ctx, "a", time.Hour)
		tried, granted := make(chan error, 1), make(chan *holdfast.Lease, 1)
		go func() {
			_, err := l.TryLock(ctx)
			tried <- err
		}()
		synctest.Wait() // its request is under way
		go func() {
			lease, err := l.Lock(context.WithoutCancel(ctx))
			redistest.Check(t, err)
			granted <- lease
		}()
		if err := <-tried; !errors.Is(err, holdfast.ErrNotAcquired) {
			t.Fatal(err)
		}
		channel, asked := "", time.Now()
		redistest.Eventually(t, locktest.Patience, "it stands in the queue, and hears its channel", func() bool {
			id, err := admin.LIndex(ctx, "redisson_lock_queue:{a}", 0).Result()
			channel = "redisson_lock__channel:{a}:" + id
			return err == nil && admin.PubSubNumSub(ctx, channel).Val()[channel] == 1
		})
		if took := time.Since(asked); took > time.Second { // not by a poll
			t.Errorf("it hears its channel after %v", took)
		}
		admin.Del(ctx, "a")
		admin.Publish(ctx, channel, "0")
		lease := <-granted
		redistest.WantMost(t, time.Since(asked), time.Second, "granted after %v")
		locktest.MustUnlock(t, lease)
	})
}
