package topology

import (
	"context"
	"fmt"
	"net"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/locktest"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

// wantHeard contends for a lock with two processes after the server by which they heard has left. Grants come by message again.
func wantHeard(t *testing.T, ms []*holdfast.Manager, lock string) {
	t.Helper()
	since := time.Now()
	l := startLoad(lock, ms, 1)
	for _, m := range ms {
		from := m.Stats()
		redistest.Eventually(t, patience, "grants come by message", func() bool {
			now := m.Stats()
			if now.Polls > from.Polls {
				from = now
			}
			return now.Granted >= from.Granted+5
		})
	}
	t.Logf("healed after %v", time.Since(since))
	var r row
	l.finish(t, &r)
	redistest.WantMost(t, l.overlaps.Load(), 0, "%d overlaps")
}

// wantFoundOut is for processes whose connection stayed where no message arrives.
func wantFoundOut(t *testing.T, ms []*holdfast.Manager) {
	t.Helper()
	if ms[0].Stats().Unheard+ms[1].Stats().Unheard == 0 {
		t.Error("no process found out that it heard nothing")
	}
}

// listening has each manager wait for a lock that stays held, so that it keeps its connection until the test ends.
func listening(t *testing.T, holder *holdfast.Manager, ms []*holdfast.Manager) {
	t.Helper()
	locktest.MustLock(t, holder.Mutex("held"))
	for _, m := range ms {
		m.Mutex("held").LockAsync(t.Context())
		redistest.Eventually(t, patience, "it listens", func() bool { return m.Stats().Subscriptions == 1 })
	}
}

// A node that hears the inboxes leaves the cluster and stays up. It answers PING and confirms SUBSCRIBE. The lock is at another master,
// so nothing else tells the clients.
func TestUnheard_NodeLeavesTheCluster(t *testing.T) {
	t.Parallel()
	// The connections to it break. Processes that load the table of the cluster a moment later connect to its successor.
	const returnedEmpty = "returned empty"
	for what, leave := range map[string]func(*testing.T, *redistest.Cluster, *redistest.Server, string){
		"forgotten": func(t *testing.T, c *redistest.Cluster, gone *redistest.Server, key string) {
			c.Failover(key, redistest.Graceful)
			forget(t, c, gone)
		},
		"reset": func(t *testing.T, c *redistest.Cluster, gone *redistest.Server, key string) {
			c.Failover(key, redistest.Graceful)
			forget(t, c, gone)
			redistest.Must(t, gone.Admin().ClusterResetHard(within(t)).Err())
		},
		returnedEmpty: func(t *testing.T, c *redistest.Cluster, gone *redistest.Server, key string) {
			replica := c.Replica(key)
			gone.Kill()
			c.Promote(replica, redistest.Takeover)
			gone.RestartEmpty()
		},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			c := redistest.StartCluster(t)
			ms := clients(t, c, 2)
			listening(t, clients(t, c, 1)[0], ms)
			gone := listensAt(t, c.Nodes())
			here, elsewhere := "", ""
			for i := 0; here == "" || elsewhere == ""; i++ {
				if key := fmt.Sprint("key:", i); c.Owner(key) == gone {
					here = key
				} else {
					elsewhere = key
				}
			}
			leave(t, c, gone, here)
			wantHeard(t, ms, elsewhere)
			if what != returnedEmpty {
				wantFoundOut(t, ms)
			}
		})
	}
}

func forget(t *testing.T, c *redistest.Cluster, gone *redistest.Server) {
	t.Helper()
	id := gone.Admin().Do(within(t), "cluster", "myid").Val()
	for _, n := range c.Nodes() {
		if n != gone {
			redistest.Must(t, n.Admin().Do(within(t), "cluster", "forget", id).Err())
		}
	}
}

// listensAt returns a server at which a process hears its inbox.
func listensAt(t *testing.T, nodes []*redistest.Server) *redistest.Server {
	t.Helper()
	for _, n := range nodes {
		if inboxes(t, n) > 0 {
			return n
		}
	}
	t.Fatal("no process listens")
	return nil
}

// A master is demoted behind the back of its clients, as it is cut off, and stays up: it does not know that it has a successor.
func TestUnheard_ServerIsSucceeded(t *testing.T) {
	t.Parallel()
	old, followers := followed(t, 1)
	next := followers[0]
	client, address := byName(t, old)
	ms := []*holdfast.Manager{manager(t, client()), manager(t, client())}
	listening(t, manager(t, client()), ms)
	next.Admin().Do(within(t), "REPLICAOF", "NO", "ONE")
	address.Store(next.Addr())
	old.Admin().ClientKillByFilter(within(t), "TYPE", "normal")
	wantHeard(t, ms, name)
	wantFoundOut(t, ms)
}

// The sentinels are told of another master. The one that they forget stays up, and takes itself for the master.
func TestUnheard_SentinelForgets(t *testing.T) {
	t.Parallel()
	s := redistest.StartSentinel(t, 1)
	old := s.Master()
	next := s.Nodes()[0]
	if next == old {
		next = s.Nodes()[1]
	}
	ms := []*holdfast.Manager{manager(t, s.Client(t)), manager(t, s.Client(t))}
	listening(t, manager(t, s.Client(t)), ms)
	opt := s.Options()
	host, port, _ := net.SplitHostPort(next.Addr())
	next.Admin().Do(within(t), "REPLICAOF", "NO", "ONE")
	for _, w := range s.Sentinels() {
		for _, cmd := range [][]any{
			{"SENTINEL", "REMOVE", opt.MasterName},
			{"SENTINEL", "MONITOR", opt.MasterName, host, port, 2},
			{"SENTINEL", "SET", opt.MasterName, "auth-pass", opt.Password},
		} {
			if err := w.Admin().Do(within(t), cmd...).Err(); err != nil {
				t.Fatal(cmd, err)
			}
		}
	}
	old.Admin().ClientKillByFilter(within(t), "TYPE", "normal")
	wantHeard(t, ms, name)
	wantFoundOut(t, ms)
}

// Something before a cluster confirms SSUBSCRIBE and passes no message of Redisson's on.
func TestUnheard_ShardedChannel(t *testing.T) {
	t.Parallel()
	c := redistest.StartCluster(t)
	if !c.Nodes()[0].Sharded() {
		t.Skip("the server knows no sharded messages")
	}
	proxies := make(map[string]*redistest.Proxy)
	for _, n := range c.Nodes() {
		proxies[n.Addr()] = n.Proxy(t)
	}
	hush := func(on bool) {
		for _, p := range proxies {
			p.Hush(on)
		}
	}
	m := manager(t, c.ClientWith(t, func(o *redis.ClusterOptions) {
		o.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, network, proxies[addr].Addr())
		}
	}))
	admin, channel := c.Owner(name).Admin(), locktest.Channel(name)
	release := func() { // as Redisson does
		admin.Del(within(t), name)
		admin.SPublish(within(t), channel, "0")
	}
	hold := func() <-chan *holdfast.Lease {
		admin.HSet(within(t), name, "00000000-0000-0000-0000-000000000000:1", 1)
		admin.PExpire(within(t), name, time.Hour)
		got := wait(t, m, name)
		redistest.Eventually(t, patience, "it listens", func() bool { return admin.PubSubShardNumSub(within(t), channel).Val()[channel] == 1 })
		return got
	}
	got := hold()
	hush(true)
	redistest.Eventually(t, patience, "it polls", func() bool { return m.Stats().Polls > 0 }) // it has asked when it began to listen
	for m.Stats().Unheard == 0 {                                                              // it looks only while it listens
		release()
		locktest.MustUnlock(t, <-got)
		got = hold()
	}
	release()
	locktest.MustUnlock(t, <-got)
	hush(false)
	for woken := m.Stats().Wakeups; m.Stats().Wakeups == woken; { // a poll can be faster than a message
		got = hold()
		release()
		locktest.MustUnlock(t, <-got)
	}
}
