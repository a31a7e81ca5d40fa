package redistest

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	clusterMasters = 3
	clusterSlots   = 16384
)

// Cluster is a Redis Cluster of this test's own: three masters with a replica each.
// Its nodes are Servers, so they can be killed, paused and restarted one by one.
//
// Methods that change the topology return when all running nodes agree about it. There
// is no event to wait for: nodes gossip, and say what they believe when asked.
type Cluster struct {
	tb       testing.TB
	password string
	nodes    []*Server
	ids      map[string]*Server    // by the node's id
	voted    map[*Server]time.Time // when Promote last had others vote for a replica
}

// nodeTimeout is when a silent node is called dead. Fail-over by election follows
// within one or two seconds. Lower values take a busy machine for a dead node.
const nodeTimeout = 1500 * time.Millisecond

// StartCluster starts a cluster on free loopback ports and waits until it is healthy,
// which takes about three seconds: Redis keeps a new master from serving for two.
// Options apply to every node.
func StartCluster(tb testing.TB, opts ...ServerOption) *Cluster {
	tb.Helper()
	c := &Cluster{tb: tb, password: rand.Text(), ids: make(map[string]*Server), voted: make(map[*Server]time.Time)}
	node := func(cfg *serverConfig) {
		cfg.password, cfg.cluster = c.password, true
		cfg.extra = append(cfg.extra,
			"--cluster-node-timeout", strconv.FormatInt(nodeTimeout.Milliseconds(), 10),
			"--cluster-replica-validity-factor", "0", // a replica may always take over
			"--cluster-allow-replica-migration", "no", // roles change only where a test says so
			"--cluster-require-full-coverage", "no", // a dead shard does not stop the others
			"--repl-ping-replica-period", "1",
		)
	}
	for range 2 * clusterMasters {
		c.nodes = append(c.nodes, Start(tb, append([]ServerOption{node}, opts...)...))
	}
	c.introduce()
	await(c.tb, "every node knows the others", func() error {
		return c.views(func(v view) error {
			if len(v.members) != len(c.nodes) {
				return fmt.Errorf("%d nodes known", len(v.members))
			}
			return v.noneUnknown()
		})
	})
	for i, replica := range c.nodes[clusterMasters:] {
		c.must(replica, "cluster", "replicate", c.id(c.nodes[i]))
	}
	c.AwaitHealthy()
	return c
}

// introduce gives the masters their slots and every node one address to start from.
func (c *Cluster) introduce() {
	for i, n := range c.nodes {
		id := c.must(n, "cluster", "myid").(string)
		c.ids[id] = n
		c.must(n, "cluster", "set-config-epoch", i+1) // equal epochs would have to be resolved first
		if i < clusterMasters {
			first, next := i*clusterSlots/clusterMasters, (i+1)*clusterSlots/clusterMasters
			add := []any{"cluster", "addslots"} // addslotsrange came with Redis 7
			for slot := first; slot < next; slot++ {
				add = append(add, slot)
			}
			c.must(n, add...)
		}
	}
	for _, n := range c.nodes[1:] {
		host, port, _ := net.SplitHostPort(n.addr)
		c.must(c.nodes[0], "cluster", "meet", host, port, n.bus)
	}
}

// Nodes returns all nodes, in no particular role.
func (c *Cluster) Nodes() []*Server { return slices.Clone(c.nodes) }

// Options returns fresh client options: go-redis's defaults, as users have them, with
// the addresses and the password filled in.
func (c *Cluster) Options() *redis.ClusterOptions {
	opt := &redis.ClusterOptions{Password: c.password}
	for _, n := range c.nodes {
		opt.Addrs = append(opt.Addrs, n.addr)
	}
	return opt
}

// Client returns a new client with default options, closed at tb's cleanup.
func (c *Cluster) Client(tb testing.TB) *redis.ClusterClient { return c.ClientWith(tb, nil) }

// ClientWith is Client with options changed by change, which may be nil.
func (c *Cluster) ClientWith(tb testing.TB, change func(*redis.ClusterOptions)) *redis.ClusterClient {
	opt := c.Options()
	if change != nil {
		change(opt)
	}
	rdb := redis.NewClusterClient(opt)
	tb.Cleanup(func() { _ = rdb.Close() })
	return rdb
}

// Slot returns the slot that key belongs to.
func (c *Cluster) Slot(key string) int {
	c.tb.Helper()
	return int(c.must(c.anyone(), "cluster", "keyslot", key).(int64))
}

// Owner returns the master that serves key, once all running nodes name the same.
func (c *Cluster) Owner(key string) *Server {
	c.tb.Helper()
	return c.AwaitNewOwner(key, nil)
}

// AwaitNewOwner waits until all running nodes name another owner of key than old, which
// is dead or has been cut off, and returns it.
func (c *Cluster) AwaitNewOwner(key string, old *Server) *Server {
	c.tb.Helper()
	slot := c.Slot(key)
	var owner *Server
	await(c.tb, fmt.Sprintf("an owner of slot %d", slot), func() error {
		owner = nil
		return c.views(func(v view) error {
			n := c.ids[v.owner(slot)]
			if n == nil || n == old || owner != nil && owner != n || old != nil && !v.ok {
				return errors.New("no common owner")
			}
			owner = n
			return nil
		})
	})
	return owner
}

// Replica returns a running replica of the master that serves key.
func (c *Cluster) Replica(key string) *Server {
	c.tb.Helper()
	owner := c.id(c.Owner(key))
	var replica *Server
	await(c.tb, fmt.Sprintf("a running replica for %q", key), func() error {
		v, err := readView(c.ids[owner])
		if err != nil {
			return err
		}
		for _, m := range v.members {
			if n := c.ids[m.id]; m.master == owner && n.running() {
				replica = n
				return nil
			}
		}
		return errors.New("none")
	})
	return replica
}

// AwaitHealthy waits until all running nodes agree: every slot has the same owner, which
// is running, no running node is believed dead, and running replicas are in sync.
func (c *Cluster) AwaitHealthy() {
	c.tb.Helper()
	await(c.tb, "a healthy cluster", func() error {
		var owners map[int]string
		err := c.views(func(v view) error {
			if err := v.healthy(c.ids); err != nil {
				return err
			}
			mine := v.owners()
			if owners == nil {
				owners = mine
			}
			for slot := range clusterSlots {
				if mine[slot] == "" || mine[slot] != owners[slot] || !c.ids[mine[slot]].running() {
					return fmt.Errorf("slot %d belongs to %q", slot, mine[slot])
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
		for _, n := range c.nodes {
			if n.running() {
				if err := inSync(n); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

// inSync fails for a replica that has no link to its master.
func inSync(n *Server) error {
	info, err := n.try("info", "replication")
	if err != nil {
		return err
	}
	text := info.(string)
	if infoField(text, "role") == "slave" && infoField(text, "master_link_status") != "up" {
		return fmt.Errorf("replica %s has no link", n.addr)
	}
	return nil
}

// id returns the id of a node.
func (c *Cluster) id(n *Server) string {
	for id, m := range c.ids {
		if m == n {
			return id
		}
	}
	panic("redistest: not a node of this cluster")
}

// anyone returns a node that can be asked.
func (c *Cluster) anyone() *Server {
	for _, n := range c.nodes {
		if n.running() {
			return n
		}
	}
	c.tb.Fatalf("redistest: no node is running")
	return nil
}

// must sends a command to one node and fails the test if that fails.
func (c *Cluster) must(n *Server, args ...any) any {
	c.tb.Helper()
	reply, err := n.try(args...)
	if err != nil {
		c.tb.Fatalf("redistest: %v: %v: %v", n.addr, args, err)
	}
	return reply
}

// try sends a command to the server itself and does not wait long for the reply.
func (s *Server) try(args ...any) (any, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	return s.Admin().Do(ctx, args...).Result()
}

// await calls probe until it succeeds.
func await(tb testing.TB, what string, probe func() error) {
	tb.Helper()
	const limit = 2 * Patience
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(limit); ; <-tick.C {
		err := probe()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			tb.Fatalf("redistest: not within %v: %s: %v", limit, what, err)
		}
	}
}
