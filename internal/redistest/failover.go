package redistest

import (
	"errors"
	"fmt"
	"net"
	"time"
)

// Failover is how a replica takes over from its master.
type Failover string

const (
	// Graceful hands over: the master stops writers until the replica has everything.
	// Nothing is lost.
	Graceful Failover = ""
	// Force asks the other masters for their votes and not the master, which may be dead.
	Force Failover = "force"
	// Takeover asks no other node.
	Takeover Failover = "takeover"
)

// Failover makes the replica of key's master the master, and returns both when all
// running nodes agree.
func (c *Cluster) Failover(key string, how Failover) (from, to *Server) {
	c.tb.Helper()
	from = c.Owner(key)
	to = c.Replica(key)
	c.Promote(to, how)
	return from, to
}

// again is for how long a replica that has asked for votes does not do so again: four times
// the node time-out, from Redis' source. An attempt within that time waits for its end, and
// a graceful one keeps writers waiting meanwhile, for five seconds at most.
const again = 4*nodeTimeout + 100*time.Millisecond

// Promote makes a replica the master of its shard and returns when all running nodes
// agree. If that needs votes and the replica had them a moment ago, it waits first.
func (c *Cluster) Promote(replica *Server, how Failover) {
	c.tb.Helper()
	if how != Takeover {
		<-time.After(time.Until(c.voted[replica].Add(again)))
		defer func() { c.voted[replica] = time.Now() }()
	}
	args := []any{"cluster", "failover"}
	if how != Graceful {
		args = append(args, string(how))
	}
	id := c.id(replica)
	// An attempt is given up by the replica after five seconds, for want of votes or of
	// a silent moment of the master.
	const attempt = 5500 * time.Millisecond
	var asked time.Time
	await(c.tb, fmt.Sprintf("fail-over (%s) to %s", how, replica.addr), func() error {
		err := c.views(func(v view) error {
			for _, m := range v.members {
				if m.id == id && m.is("master") && len(m.slots) > 0 {
					return nil
				}
			}
			return errors.New("not promoted")
		})
		if err != nil && time.Since(asked) > attempt {
			asked = time.Now()
			if _, refused := replica.try(args...); refused != nil {
				return errors.Join(err, refused)
			}
		}
		return err
	})
}

// Migration is one slot on its way from a master to another. While it lasts, both
// answer for it: the old one for keys that it still has, the other after ASKING.
type Migration struct {
	c        *Cluster
	slot     int
	from, to *Server
}

// StartMigration begins to move key's slot to a master. No key moves yet.
func (c *Cluster) StartMigration(key string, to *Server) *Migration {
	c.tb.Helper()
	m := &Migration{c: c, slot: c.Slot(key), from: c.Owner(key), to: to}
	c.must(to, "cluster", "setslot", m.slot, "importing", c.id(m.from))
	c.must(m.from, "cluster", "setslot", m.slot, "migrating", c.id(to))
	return m
}

// MoveKeys moves the keys that the slot has.
func (m *Migration) MoveKeys() {
	m.c.tb.Helper()
	host, port, _ := net.SplitHostPort(m.to.addr)
	for {
		keys := m.c.must(m.from, "cluster", "getkeysinslot", m.slot, 100).([]any)
		if len(keys) == 0 {
			return
		}
		args := []any{"migrate", host, port, "", 0, 5000, "auth", m.c.password, "keys"}
		m.c.must(m.from, append(args, keys...)...)
	}
}

// Finish moves the keys that are left, gives the slot to its new owner, and returns when
// all running nodes agree.
func (m *Migration) Finish() {
	m.c.tb.Helper()
	m.MoveKeys()
	id := m.c.id(m.to)
	// First the new owner: until it knows, the old one redirects to it in vain.
	m.c.must(m.to, "cluster", "setslot", m.slot, "node", id)
	m.c.must(m.from, "cluster", "setslot", m.slot, "node", id)
	await(m.c.tb, fmt.Sprintf("slot %d at %s", m.slot, m.to.addr), func() error {
		return m.c.views(func(v view) error {
			if owner := v.owner(m.slot); owner != id {
				return fmt.Errorf("it belongs to %s", owner)
			}
			return nil
		})
	})
}

// Migrate moves key's slot to another master, while clients use it.
func (c *Cluster) Migrate(key string, to *Server) {
	c.tb.Helper()
	c.StartMigration(key, to).Finish()
}

// OtherMaster returns a running master that does not serve key.
func (c *Cluster) OtherMaster(key string) *Server {
	c.tb.Helper()
	owner := c.Owner(key)
	v, err := readView(owner)
	if err != nil {
		c.tb.Fatalf("redistest: %v", err)
	}
	for _, m := range v.members {
		if n := c.ids[m.id]; n != owner && n.running() && m.is("master") && len(m.slots) > 0 {
			return n
		}
	}
	c.tb.Fatalf("redistest: no other master is running")
	return nil
}
