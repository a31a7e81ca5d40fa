package topology

import (
	"context"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/locktest"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

// byName makes clients of a server that is reached by a name, whose address can be changed.
func byName(t *testing.T, s *redistest.Server) (client func() *redis.Client, address *atomic.Value) {
	address = new(atomic.Value)
	address.Store(s.Addr())
	return func() *redis.Client {
		c := redis.NewClient(&redis.Options{Dialer: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "tcp", address.Load().(string))
		}})
		t.Cleanup(func() { _ = c.Close() })
		return c
	}, address
}

// inboxes is how many processes hear of grants at s.
func inboxes(t *testing.T, s *redistest.Server) int {
	return len(s.Admin().PubSubChannels(within(t), "holdfast_inbox:*").Val())
}

// listens waits until a process hears of grants at s.
func listens(t *testing.T, s *redistest.Server) {
	t.Helper()
	redistest.Eventually(t, patience, "it listens", func() bool { return inboxes(t, s) == 1 })
}

// failover makes next, which follows old, the master.
func failover(t *testing.T, old, next *redistest.Server) {
	t.Helper()
	host, port, _ := net.SplitHostPort(next.Addr())
	redistest.Must(t, old.Admin().Do(within(t), "FAILOVER", "TO", host, port).Err())
	acknowledged(t, next, 1)
}

// A planned fail-over behind a name or a proxy leaves a subscription where it was, at a server that is
// a replica now, and passes messages on. The process listens to the new master then.
func TestMoved_InboxFollowsTheMaster(t *testing.T) {
	old, followers := followed(t, 1)
	next := followers[0]
	client, address := byName(t, old)
	holder, waiter := manager(t, client()), manager(t, client(), unpolled...)
	held := locktest.MustLock(t, holder.Mutex(name))
	got := wait(t, waiter, name)
	listens(t, old)
	failover(t, old, next)
	address.Store(next.Addr())
	if _, err := waiter.Mutex(name).TryLock(within(t)); err == nil { // whatever it says: the server's answer is "read only"
		t.Fatal("two holders")
	}
	redistest.Eventually(t, patience, "it listens to the new master", func() bool { return inboxes(t, next) == 1 && inboxes(t, old) == 0 })
	redistest.Eventually(t, patience, "the holder has its place", func() bool { _, err := holder.Inspect(within(t), name); return err == nil })
	locktest.MustUnlock(t, held)
	locktest.MustUnlock(t, <-got)
	redistest.Want(t, waiter.Stats().Granted, 1, "%d grants by message")
}

// A deployment moves to another server, and the old one lives on, with the subscriptions: it is no replica,
// so no client learns of that. A process that listens there is served, and may find out by an echo before that.
func TestMoved_WhoListensElsewhereIsServed(t *testing.T) {
	for kind, lock := range map[string]func(*holdfast.Manager) holdfast.Locker{
		"mutex": func(m *holdfast.Manager) holdfast.Locker { return m.Mutex(name) },
		"fair":  func(m *holdfast.Manager) holdfast.Locker { return m.FairMutex(name) },
		"write": func(m *holdfast.Manager) holdfast.Locker { return m.RWMutex(name) },
	} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			old, followers := followed(t, 1)
			next := followers[0]
			client, address := byName(t, old)
			locktest.MustLock(t, lock(manager(t, old.Client(t))))
			waiter := manager(t, client())
			got := locktest.Waits(t, lock(waiter))
			listens(t, old)
			acknowledged(t, old, 1)
			next.Admin().Do(within(t), "REPLICAOF", "NO", "ONE")
			next.Admin().Del(within(t), name)
			address.Store(next.Addr())
			var crowd sync.WaitGroup
			defer crowd.Wait()
			ctx, stop := context.WithCancel(within(t))
			defer stop()
			for range 2 { // the lock is never free
				m := manager(t, next.Client(t))
				for range 2 {
					crowd.Go(func() {
						for {
							lease, err := lock(m).Lock(ctx)
							if err != nil {
								return
							}
							_ = lease.Unlock(context.Background())
						}
					})
				}
			}
			old.Admin().ClientKillByFilter(within(t), "TYPE", "normal")
			locktest.MustUnlock(t, got()) // it waited first
		})
	}
}

// The name of the master, or a proxy, may lead to the old one for a while, which says that it is a
// replica: a connection that is made meanwhile is one to the old one.
func TestMoved_AddressFollowsLater(t *testing.T) {
	old, followers := followed(t, 1)
	next := followers[0]
	client, address := byName(t, old)
	other := "00000000-0000-0000-0000-000000000000:1" // holds it
	old.Admin().HSet(within(t), name, other, 1)
	acknowledged(t, old, 1)
	waiter := manager(t, client())
	got := wait(t, waiter, name)
	listens(t, old)
	failover(t, old, next)
	redistest.Eventually(t, patience, "it listens to the old one again", func() bool { return waiter.Stats().Reconnects == 1 && inboxes(t, old) == 1 })
	address.Store(next.Addr())
	redistest.Eventually(t, patience, "it listens to the new master", func() bool { return inboxes(t, next) == 1 && inboxes(t, old) == 0 })
	next.Admin().Del(within(t), name)
	locktest.MustUnlock(t, <-got)
	redistest.WantMost(t, waiter.Stats().Reconnects, 3, "%d connections")
}

// A process that listens at a replica only is taken for dead, and then it must not hear of a grant that is
// undone: it would believe it.
func TestMoved_GrantToTheUnheardIsNotTold(t *testing.T) {
	for kind, lock := range map[string]func(*holdfast.Manager) holdfast.Locker{
		"mutex": func(m *holdfast.Manager) holdfast.Locker { return m.Mutex(name) },
		"write": func(m *holdfast.Manager) holdfast.Locker { return m.RWMutex(name) },
	} {
		t.Run(kind, func(t *testing.T) {
			master, followers := followed(t, 1)
			other := "12345678-1234-1234-1234-123456789abc"
			inbox := "holdfast_inbox:" + other
			sub := followers[0].Admin().Subscribe(within(t), inbox)
			defer sub.Close()
			redistest.Must(t, locktest.ErrOf(sub.Receive(within(t))))
			held := locktest.MustLock(t, lock(manager(t, master.Client(t))))
			queue, deadlines, id := "redisson_lock_queue:{"+name+"}", "redisson_lock_timeout:{"+name+"}", "hf-"+other+":1"
			if kind == "write" {
				queue, deadlines, id = "holdfast_rw_queue:{"+name+"}", "holdfast_rw_timeout:{"+name+"}", id+":write"
			}
			admin := master.Admin()
			admin.RPush(within(t), queue, id)
			admin.ZAdd(within(t), deadlines, redis.Z{Score: float64(time.Now().Add(time.Minute).UnixMilli()), Member: id})
			locktest.MustUnlock(t, held)
			redistest.Want(t, admin.Exists(within(t), name, queue, deadlines).Val(), 0, "%d keys are left")
			admin.Publish(within(t), inbox, "the end")
			msg, err := sub.ReceiveMessage(within(t))
			if err != nil || msg.Payload != "the end" {
				t.Errorf("it was told %v, %v", msg, err)
			}
		})
	}
}

// What NewFailoverClusterClient returns for Sentinel, where replicas are to be read from, is a cluster's
// client by its type only: there are no shards, and Redisson has plain channels.
func TestMoved_ClusterClientOfNoCluster(t *testing.T) {
	master, followers := followed(t, 1)
	client := redis.NewClusterClient(&redis.ClusterOptions{
		RouteRandomly: true,
		ClusterSlots: func(context.Context) ([]redis.ClusterSlot, error) {
			return []redis.ClusterSlot{{Start: 0, End: 16383, Nodes: []redis.ClusterNode{{Addr: master.Addr()}, {Addr: followers[0].Addr()}}}}, nil
		},
	})
	t.Cleanup(func() { _ = client.Close() })
	if _, err := holdfast.New(client, holdfast.WithPublishMode(holdfast.PublishSharded)); err == nil {
		t.Error("sharded messages where there are no shards")
	}
	m, admin, channel := manager(t, client, unpolled...), master.Admin(), locktest.Channel(name)
	sub := admin.Subscribe(within(t), channel) // as Redisson does
	defer sub.Close()
	redistest.Must(t, locktest.ErrOf(sub.Receive(within(t))))
	locktest.MustUnlock(t, locktest.MustLock(t, m.Mutex(name)))
	if msg, err := sub.ReceiveMessage(within(t)); err != nil || msg.Payload != "0" {
		t.Errorf("Redisson hears %v, %v", msg, err)
	}

	admin.HSet(within(t), name, "java:1", 1)
	admin.PExpire(within(t), name, time.Hour)
	got := wait(t, m, name)
	redistest.Eventually(t, patience, "it listens, be it at the replica", func() bool {
		n := int64(0)
		for _, s := range []*redistest.Server{master, followers[0]} {
			n += s.Admin().PubSubNumSub(within(t), channel).Val()[channel]
		}
		return n == 2
	})
	admin.Del(within(t), name)
	admin.Publish(within(t), channel, "0")
	locktest.MustUnlock(t, <-got)
}
