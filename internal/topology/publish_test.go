package topology

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

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
	if err := f.c.Owner(name).Admin().Eval(within(f.T), lock, []string{name}, "00000000-0000-0000-0000-000000000000:1").Err(); err != nil {
		f.Fatal(err)
	}
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
	if err := node.Eval(within(f.T), release, []string{name, locktest.Channel(name)}, publish).Err(); err != nil {
		f.Fatal(err)
	}
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
	go func() { got <- mustLock(t, m.Mutex(name)) }()
	return got
}

// wantPrompt fails if it took long from a release to the grant. A waiter that is not woken
// polls after 48 s at the least.
func wantPrompt(t *testing.T, released time.Time) {
	t.Helper()
	d := time.Since(released)
	t.Logf("woken after %v", d)
	if d > patience/3 {
		t.Errorf("woken after %v", d)
	}
}

// AC-54. A peer that is not Holdfast, such as Redisson in a cluster, releases and listens.
func TestPublish_PeersHearEachOther(t *testing.T) {
	t.Parallel()
	c := redistest.StartCluster(t)
	for _, mode := range publishModes(c) {
		t.Run(mode.String(), func(t *testing.T) {
			f := newForeigner(t, c, mode)
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
			if _, err := sub.ReceiveTimeout(within(t), patience); err != nil { // the confirmation
				t.Fatal(err)
			}
			mustUnlock(t, lease)
			msg, err := sub.ReceiveMessage(within(t))
			if err != nil || msg.Payload != "0" {
				t.Errorf("theirs received %v, %v", msg, err)
			}
		})
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
		held := mustLock(t, plain.Mutex(name))
		got := wait(t, m, name)
		redistest.Eventually(t, patience, "it listens", func() bool { return m.Stats().Subscriptions == 1 })
		var at *redistest.Server
		redistest.Eventually(t, patience, "its inbox is known", func() bool {
			for _, node := range c.Nodes() {
				if len(node.Admin().PubSubChannels(within(t), "holdfast_inbox:*").Val()) > 0 {
					at = node
				}
			}
			return at != nil
		})
		redistest.Eventually(t, patience, "it has said so", func() bool { return m.Stats().Commands >= 2 })
		if _, err := m.Inspect(within(t), name); err != nil { // replied after that
			t.Fatal(err)
		}
		mustUnlock(t, held)
		start := time.Now()
		mustUnlock(t, <-got)
		wantPrompt(t, start)
		if err := m.Close(within(t)); err != nil {
			t.Fatal(err)
		}
		if at != owner {
			return
		}
		redistest.Eventually(t, patience, "it does not listen any more", func() bool { return len(at.Admin().PubSubChannels(within(t), "holdfast_inbox:*").Val()) == 0 })
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
				mustUnlock(t, lease)
			}
			mustUnlock(t, <-got)
			if n := c.Replica(name).CommandCalls("eval", "evalsha"); n != 0 {
				t.Errorf("a replica was asked %d times", n)
			}
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
			mustUnlock(t, lease)
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
				mustUnlock(t, lease)
			}
		})
	}
}

// A channel that is denied is asked for again after pauses. Others of the same master are heard meanwhile, and no
// connection ends because of it.
func TestPublish_OneChannelIsForbidden(t *testing.T) {
	t.Parallel()
	c := redistest.StartCluster(t)
	f := newForeigner(t, c, holdfast.PublishAuto)
	permit(t, c.Nodes(), "some", strings.Fields("resetchannels on >secret ~* +@all &holdfast_* &redisson_*{fine*"))
	client := c.ClientWith(t, func(o *redis.ClusterOptions) { o.Username, o.Password = "some", "secret" })
	pauses := make(pausesLogged, 1000)
	m := manager(t, client, append(unpolled, holdfast.WithLogger(slog.New(pauses)))...)
	var fine []string
	for i := 0; len(fine) < 5; i++ {
		if n := fmt.Sprint("fine", i); c.Owner(n) == c.Owner(name) {
			fine = append(fine, n)
		}
	}
	got := make(map[string]<-chan *holdfast.Lease)
	for _, n := range append(fine, name) {
		f.lock(n)
		got[n] = wait(t, m, n)
	}
	for most := time.Duration(0); most < time.Second/2; {
		select {
		case d := <-pauses:
			most = max(most, d)
		case <-time.After(patience):
			t.Fatalf("no pause was longer than %v", most)
		}
	}
	for _, n := range fine {
		f.awaitListeners(n, 1)
		f.unlock(n)
		mustUnlock(t, <-got[n])
		delete(got, n)
	}
	if n := m.Stats().Reconnects; n > 0 {
		t.Errorf("%d reconnections", n)
	}
	f.unlock(name)
	permit(t, c.Nodes(), "some", strings.Fields("on >secret ~* +@all &*"))
	for _, g := range got {
		mustUnlock(t, <-g)
	}
}

// pausesLogged is a log handler that passes on how long the subscriber waits.
type pausesLogged chan time.Duration

func (pausesLogged) Enabled(context.Context, slog.Level) bool { return true }
func (p pausesLogged) WithAttrs([]slog.Attr) slog.Handler     { return p }
func (p pausesLogged) WithGroup(string) slog.Handler          { return p }

func (p pausesLogged) Handle(_ context.Context, r slog.Record) error {
	r.Attrs(func(a slog.Attr) bool {
		if a.Key == "retry_in" {
			p <- a.Value.Duration()
		}
		return true
	})
	return nil
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
				if err := node.Admin().ClientKillByFilter(within(t), "TYPE", "pubsub").Err(); err != nil {
					t.Fatal(err)
				}
			}
			redistest.Eventually(t, patience, "the loss is noticed", func() bool { return m.Stats().Reconnects > before })
			for n := range got {
				f.awaitListeners(n, 1)
			}
			for n, granted := range got {
				released := f.unlock(n)
				mustUnlock(t, <-granted)
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

// A server that does not know sharded messages, as before Redis 7: plain ones are used in
// both directions.
func TestPublish_OldServer(t *testing.T) {
	t.Parallel()
	c := redistest.StartCluster(t, redistest.WithoutShardedMessages())
	f := newForeigner(t, c, holdfast.PublishClassic)
	m := clients(t, c, 1, unpolled...)[0]
	f.lock(name)
	got := wait(t, m, name)
	f.awaitListeners(name, 1)
	released := f.unlock(name)
	lease := <-got
	wantPrompt(t, released)
	sub := c.Owner(name).Admin().Subscribe(within(t), locktest.Channel(name))
	defer sub.Close()
	if _, err := sub.ReceiveTimeout(within(t), patience); err != nil {
		t.Fatal(err)
	}
	mustUnlock(t, lease)
	if msg, err := sub.ReceiveMessage(within(t)); err != nil || msg.Payload != "0" {
		t.Errorf("theirs received %v, %v", msg, err)
	}
}
