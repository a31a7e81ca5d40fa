package topology

import (
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/locktest"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

// AC-54. A peer that is not Holdfast, such as Redisson in a cluster, releases and listens. Servers before Redis 7 know no sharded messages:
// plain ones are used in both directions.
func TestPublish_PeersHearEachOther(t *testing.T) {
	t.Parallel()
	c := redistest.StartCluster(t)
	for _, mode := range publishModes(c) {
		t.Run(mode.String(), func(t *testing.T) { peersHearEachOther(newForeigner(t, c, mode), mode) })
	}
	t.Run("before Redis 7", func(t *testing.T) {
		old := redistest.StartCluster(t, redistest.WithoutShardedMessages())
		peersHearEachOther(newForeigner(t, old, holdfast.PublishClassic), holdfast.PublishAuto)
	})
}

func peersHearEachOther(f foreigner, mode holdfast.PublishMode) {
	t, c := f.T, f.c
	m := clients(t, c, 1, append(unpolled, holdfast.WithPublishMode(mode))...)[0]

	// The peer's release wakes Holdfast's waiter.
	f.lock(name)
	got := wait(t, m, name)
	f.awaitListeners(name, 1)
	released := f.unlock(name)
	lease := <-got
	wantPrompt(t, released)

	// Holdfast's release wakes the peer's waiter.
	node := c.Owner(name).Admin()
	subscribe := node.Subscribe
	if f.sharded {
		subscribe = node.SSubscribe
	}
	sub := subscribe(within(t), locktest.Channel(name))
	defer sub.Close()
	redistest.Must(t, locktest.ErrOf(sub.ReceiveTimeout(within(t), patience))) // the confirmation
	locktest.MustUnlock(t, lease)
	msg, err := sub.ReceiveMessage(within(t))
	if err != nil || msg.Payload != "0" {
		t.Errorf("theirs received %v, %v", msg, err)
	}
}

// A process whose client is a plain one, connected to a node of the cluster, does not take those for
// dead that listen at another node.
func TestPublish_PlainClientOfANode(t *testing.T) {
	t.Parallel()
	c := redistest.StartCluster(t)
	owner := c.Owner(name)
	plain := manager(t, owner.Client(t), unpolled...)
	for {
		m := manager(t, c.Client(t), unpolled...)
		held := locktest.MustLock(t, plain.Mutex(name))
		got := wait(t, m, name)
		redistest.Eventually(t, patience, "it listens", func() bool { return m.Stats().Subscriptions == 1 })
		var at *redistest.Server
		redistest.Eventually(t, patience, "its inbox is known", func() bool {
			for _, node := range c.Nodes() {
				if inboxes(t, node) > 0 {
					at = node
				}
			}
			return at != nil
		})
		redistest.Eventually(t, patience, "it has said so", func() bool { return m.Stats().Commands >= 2 })
		redistest.Must(t, locktest.ErrOf(m.Inspect(within(t), name))) // replied after that
		locktest.MustUnlock(t, held)
		start := time.Now()
		locktest.MustUnlock(t, <-got)
		wantPrompt(t, start)
		redistest.Must(t, m.Close(within(t)))
		if at != owner {
			return
		}
		redistest.Eventually(t, patience, "it does not listen any more", func() bool { return inboxes(t, at) == 0 })
	}
}

// A client that reads from replicas, for the sake of its other work, is as good as any:
// no request of Holdfast goes to a replica, and what is heard through one comes.
func TestPublish_ClientReadsFromReplicas(t *testing.T) {
	t.Parallel()
	c := redistest.StartCluster(t)
	for _, mode := range publishModes(c) {
		t.Run(mode.String(), func(t *testing.T) {
			f := newForeigner(t, c, mode)
			var ms []*holdfast.Manager
			for range 3 {
				client := c.ClientWith(t, func(o *redis.ClusterOptions) { o.ReadOnly, o.RouteRandomly = true, true })
				ms = append(ms, manager(t, client, append(unpolled, holdfast.WithPublishMode(mode))...))
			}
			f.lock(name)
			got := wait(t, ms[0], name)
			f.awaitListeners(name, 1)
			released := f.unlock(name)
			for i := range 10 {
				lease := <-got
				wantPrompt(t, released)
				got = wait(t, ms[(i+1)%len(ms)], name)
				redistest.Eventually(t, patience, "the next one is queued", func() bool {
					info, err := ms[i%len(ms)].Inspect(within(t), name)
					if err != nil || !info.Held {
						t.Fatalf("Inspect: %+v, %v", info, err)
					}
					return info.Waiters == 1
				})
				released = time.Now()
				locktest.MustUnlock(t, lease)
			}
			locktest.MustUnlock(t, <-got)
			redistest.Want(t, c.Replica(name).CommandCalls("eval", "evalsha"), 0, "a replica was asked %d times")
		})
	}
}

// The slot of a lock that one of Redisson's holds moves, again and again, while one of
// Holdfast waits. In sharded mode the server ends the subscription then.
func TestPublish_SlotMovesWhileWaiting(t *testing.T) {
	t.Parallel()
	c := redistest.StartCluster(t)
	for _, mode := range publishModes(c) {
		t.Run(mode.String(), func(t *testing.T) {
			f := newForeigner(t, c, mode)
			m := clients(t, c, 1, append(unpolled, holdfast.WithPublishMode(mode))...)[0]
			f.lock(name)
			got := wait(t, m, name)
			f.awaitListeners(name, 1)
			for range 3 {
				c.Migrate(name, c.OtherMaster(name))
				moved := time.Now()
				f.awaitListeners(name, 1)
				t.Logf("heard again %v after the move", time.Since(moved))
			}
			released := f.unlock(name)
			lease := <-got
			wantPrompt(t, released)
			locktest.MustUnlock(t, lease)
		})
	}
}

// The master that has the lock and the subscription is killed. Others' waiters hear on.
func TestPublish_MasterIsKilledWhileWaiting(t *testing.T) {
	t.Parallel()
	for _, mode := range []holdfast.PublishMode{holdfast.PublishClassic, holdfast.PublishAuto} {
		t.Run(mode.String(), func(t *testing.T) {
			t.Parallel()
			c := redistest.StartCluster(t)
			f := newForeigner(t, c, mode)
			m := clients(t, c, 1, append(unpolled, holdfast.WithPublishMode(mode))...)[0]
			old, other := c.Owner(name), otherShard(c, name)
			got := make(map[string]<-chan *holdfast.Lease)
			for _, n := range []string{name, other} {
				f.lock(n)
				got[n] = wait(t, m, n)
				f.awaitListeners(n, 1)
			}
			acknowledged(t, old, 1)
			old.Kill()
			c.AwaitNewOwner(name, old)
			elected := time.Now()
			for _, n := range []string{name, other} {
				f.awaitListeners(n, 1)
			}
			t.Logf("heard again %v after the election", time.Since(elected))
			for _, n := range []string{name, other} {
				released := f.unlock(n)
				lease := <-got[n]
				// Plain messages are heard from any node: no client has looked for the new master
				// before the request that follows the message.
				wantPrompt(t, released)
				locktest.MustUnlock(t, lease)
			}
		})
	}
}

// otherShard returns a name that another master has.
func otherShard(c *redistest.Cluster, name string) string {
	for i := 0; ; i++ {
		if n := fmt.Sprint("other", i); c.Owner(n) != c.Owner(name) {
			return n
		}
	}
}

// Many locks in many slots of all masters: each is heard, also after the connections have
// been cut, and nothing stays subscribed.
func TestPublish_ManyNames(t *testing.T) {
	t.Parallel()
	c := redistest.StartCluster(t)
	for _, mode := range publishModes(c)[:2] {
		t.Run(mode.String(), func(t *testing.T) {
			f := newForeigner(t, c, mode)
			m := clients(t, c, 1, append(unpolled, holdfast.WithPublishMode(mode))...)[0]
			const names = 60
			got := make(map[string]<-chan *holdfast.Lease)
			for i := range names {
				n := fmt.Sprint("many", i)
				f.lock(n)
				got[n] = wait(t, m, n)
			}
			for n := range got {
				f.awaitListeners(n, 1)
			}
			before := m.Stats().Reconnects
			for _, node := range c.Nodes() {
				redistest.Must(t, node.Admin().ClientKillByFilter(within(t), "TYPE", "pubsub").Err())
			}
			redistest.Eventually(t, patience, "the loss is noticed", func() bool { return m.Stats().Reconnects > before })
			for n := range got {
				f.awaitListeners(n, 1)
			}
			for n, granted := range got {
				released := f.unlock(n)
				locktest.MustUnlock(t, <-granted)
				wantPrompt(t, released)
			}
			for n := range got {
				f.awaitListeners(n, 0)
			}
			redistest.Eventually(t, patience, "nothing is subscribed", func() bool { return m.Stats().Subscriptions == 0 })
			redistest.Eventually(t, patience, "no connection is left", func() bool {
				for _, node := range c.Nodes() {
					if n, err := node.Admin().Do(within(t), "client", "list", "type", "pubsub").Text(); err != nil || n != "" {
						return false
					}
				}
				return true
			})
		})
	}
}
