package sim

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/internal/vredis"
)

// fault is a kind of what can go wrong.
type fault struct {
	name string
	do   func(n *nemesis)
}

// nemesis is one fault that happens.
type nemesis struct {
	w *World
	f Fault
	p *process
	s *server
}

// gentle faults are those that must not cost a holder its lease or a moment more than a few trips over the network.
var gentle = []fault{
	{"cut subscriptions", func(n *nemesis) { n.p.cutLocked(func(c *link) bool { return c.messages && c.s == n.s }) }},
	{"flush scripts", func(n *nemesis) { n.s.redis.Do("script", "flush") }},
	{"close", func(n *nemesis) { n.p.closeLocked(); n.p.replaceLocked(n.f.For) }},
}

// brief faults end a connection. None of them must cost a lease.
var brief = []fault{
	{"cut", func(n *nemesis) { n.p.troubleLocked(0); n.p.cutLocked(func(c *link) bool { return c.s == n.s }) }},
	{"cut one", func(n *nemesis) {
		if c := n.link(); c != nil {
			n.p.troubleLocked(0)
			c.cutLocked(0)
		}
	}},
	{"lose request, cut", func(n *nemesis) { n.lose(true, "cut") }},
	{"lose reply, cut", func(n *nemesis) { n.lose(false, "cut") }},
	{"close, lose grant", func(n *nemesis) { n.p.closings = append(n.p.closings, n.f.For) }},
}

// stalls are processes that stand still, for less than a lease and for more.
var stalls = []fault{
	{"stall", func(n *nemesis) { n.p.stallLocked(n.f.For) }},
	{"stall at an answer", func(n *nemesis) { n.p.pauses = append(n.p.pauses, pause{n.f.Script, n.f.For}) }},
}

// safe faults leave the data alone.
var safe = append([]fault{
	{"hole", func(n *nemesis) {
		if c := n.link(); c != nil {
			n.p.graveLocked(0)
			c.holeLocked()
		}
	}},
	{"half-open", func(n *nemesis) { // the server has forgotten the connection
		if c := n.link(); c != nil {
			n.p.graveLocked(0)
			c.holeLocked()
			c.endLocked()
		}
	}},
	{"deaf", func(n *nemesis) { // the server writes to a connection that no process reads
		n.p.troubleLocked(0)
		for _, c := range n.p.links {
			if c.messages && c.s == n.s {
				c.holeLocked()
			}
		}
	}},
	{"part", func(n *nemesis) { n.p.partLocked(n.s, n.f.For, false) }},
	{"part and cut", func(n *nemesis) { n.p.partLocked(n.s, n.f.For, true) }},
	{lateRenewal, func(n *nemesis) { n.p.late++ }},
	{"slow", func(n *nemesis) {
		n.p.slow += n.f.For / 8
		n.p.slowest = max(n.p.slowest, n.p.slow)
		n.p.graveLocked(n.f.For)
		n.later(func() { n.p.slow -= n.f.For / 8 })
	}},
	{"late messages", func(n *nemesis) {
		n.p.troubleLocked(n.f.For)
		for _, c := range n.p.links {
			if c.messages && c.s == n.s {
				c.slow += n.f.For / 4
				n.p.slowest = max(n.p.slowest, n.p.slow+c.slow)
				n.later(func() { c.slow -= n.f.For / 4 })
			}
		}
	}},
	{"late connection", func(n *nemesis) { // what goes over it is overtaken
		if c := n.link(); c != nil && !c.messages {
			n.p.graveLocked(n.f.For + n.f.For/4)
			c.slow += n.f.For / 4
			n.p.slowest = max(n.p.slowest, n.p.slow+c.slow)
			n.later(func() { c.slow -= n.f.For / 4 })
		}
	}},
	{"kill", func(n *nemesis) { n.p.troubleLocked(0); n.p.killLocked(); n.p.replaceLocked(n.f.For) }},
	{"freeze", func(n *nemesis) { n.s.troubleLocked(n.f.For); n.s.freezeLocked(n.f.For) }},
	{"restart", func(n *nemesis) {
		n.s.troubleLocked(n.f.For)
		n.s.stopLocked()
		n.later(func() { n.s.startLocked(true) })
	}},
	{"clock set back", func(n *nemesis) { // leases in Redis, and places, last for longer
		n.s.troubleLocked(n.f.For)
		n.s.back.Add(int64(n.f.For / 2))
	}},
	{"lose request, hole", func(n *nemesis) { n.lose(true, "hole") }},
	{"lose reply, hole", func(n *nemesis) { n.lose(false, "hole") }},
	{"out of memory", func(n *nemesis) { n.refuses((*vredis.Server).SetOOM) }},
	{"read-only", func(n *nemesis) { n.refuses((*vredis.Server).SetReadOnly) }},
	{"loading", func(n *nemesis) { n.refuses((*vredis.Server).SetLoading) }},
	{"cannot save", func(n *nemesis) { n.refuses((*vredis.Server).SetMisconf) }},
}, slices.Concat(brief, stalls)...)

// byHand is what an administrator does. Promises about that lock may be broken for a while.
var byHand = []fault{
	{"delete", func(n *nemesis) {
		u := n.unit()
		u.loseLocked()
		u.s.redis.Do("del", u.Name)
	}},
	{"spoil", func(n *nemesis) { // an administrator puts something else in the lock's place
		u := n.unit()
		u.loseLocked()
		u.s.redis.Do("set", u.Name, "spoilt", "px", "1500")
	}},
	{"delete queue", func(n *nemesis) {
		u := n.unit()
		u.s.redis.Do("del", u.Keys.Queue.(string))
		if n.f.Which%2 == 0 {
			u.s.redis.Do("del", u.Keys.Deadlines.(string))
		}
		u.loseLocked()
	}},
}

// lossy faults lose data of all locks.
var lossy = []fault{
	{"empty", func(n *nemesis) { n.restartEmpty(true) }},
	{"fail-over", func(n *nemesis) {
		copied := n.s.redis.Snapshot()
		n.s.troubleLocked(n.f.For)
		n.w.afterLocked(n.f.For, func() {
			n.s.stopLocked()
			n.s.startLocked(true)
			n.s.redis.Restore(copied)
			n.w.loseLocked(n.s, true)
			n.w.noteLocked("%s has failed over", n.s.addr)
		})
	}},
}

// ofReplicas are those of a server with replicas.
var ofReplicas = []fault{
	{"replicas stall", func(n *nemesis) {
		n.s.troubleLocked(n.f.For)
		n.s.ackedLocked(n.f.Which % 2)
		n.later(func() { n.s.ackedLocked(2) })
	}},
}

// ofMembers are those of a Redlock's members. One that returns without its data does so when all leases have ended
// that it knew of.
var ofMembers = []fault{
	{"member returns empty", func(n *nemesis) {
		n.f.For = longestLease + mostExtension + time.Second
		n.w.faulty = max(n.w.faulty, n.w.now()+n.f.For)
		n.restartEmpty(false)
	}},
	{"member is silent", func(n *nemesis) {
		n.f.For *= 3
		n.s.troubleLocked(n.f.For)
		n.s.freezeLocked(n.f.For)
		n.w.faulty = max(n.w.faulty, n.w.now()+n.f.For)
	}},
}

// faults are all of them.
var faults = slices.Concat(gentle, safe, byHand, lossy, ofReplicas, ofMembers)

// scheduleLocked has the faults of the plan happen.
func (w *World) scheduleLocked() {
	for _, f := range w.plan.Faults {
		w.atLocked(f.At, func() {
			p := w.processes[f.Process]
			if p == nil || p.dead || p.closed || w.healed {
				return
			}
			w.faulty = max(w.faulty, w.now()+f.For)
			i := slices.IndexFunc(faults, func(k fault) bool { return k.name == f.Kind })
			w.stats.Faults++
			w.noteLocked("FAULT %s: %v, %s, for %v %s", f.Kind, p, w.servers[f.Server].addr, f.For, f.Script)
			faults[i].do(&nemesis{w, f, p, w.servers[f.Server]})
			w.judge.touchLocked(w.servers[f.Server])
		})
	}
}

// later ends the fault.
func (n *nemesis) later(do func()) {
	n.w.afterLocked(n.f.For, func() {
		n.w.noteLocked("over: %s", n.f.Kind)
		do()
		n.w.judge.touchLocked(n.s)
	})
}

// link returns one of the process's connections to the server; nil: it has none.
func (n *nemesis) link() *link {
	all := n.p.linksLocked(func(c *link) bool { return c.s == n.s })
	if len(all) == 0 {
		return nil
	}
	return all[n.f.Which%len(all)]
}

// lose has the next request of a script, or its reply, be lost.
func (n *nemesis) lose(request bool, then string) {
	n.p.troubleLocked(2 * time.Second) // it may have to wait for such a request
	n.p.losses = append(n.p.losses, &loss{n.f.Script, request, then})
}

// refuses has the server refuse what it should do.
func (n *nemesis) refuses(set func(*vredis.Server, bool)) {
	n.s.troubleLocked(n.f.For)
	n.s.refusals[n.f.Kind]++
	set(n.s.redis, true)
	n.later(func() {
		if n.s.refusals[n.f.Kind]--; n.s.refusals[n.f.Kind] == 0 {
			set(n.s.redis, false)
		}
	})
}

func (n *nemesis) unit() *unit {
	units := n.p.locks[n.f.Lock].units
	return units[n.f.Which%len(units)]
}

// restartEmpty ends the server for a while, and its data. It shows if shows says so, and else only to locks of this one server.
func (n *nemesis) restartEmpty(shows bool) {
	n.s.troubleLocked(n.f.For)
	n.s.stopLocked()
	if !shows {
		n.s.rememberLocked()
	}
	n.w.loseLocked(n.s, shows)
	n.later(func() {
		n.s.startLocked(false)
		n.w.loseLocked(n.s, shows)
	})
}

// loseLocked says that data of all locks on s is lost.
func (w *World) loseLocked(s *server, elections bool) {
	for _, u := range w.units {
		if u.s == s || u.s == nil && elections {
			u.loseLocked()
		}
	}
}

// closeLocked closes the managers of p while it works.
func (p *process) closeLocked() {
	w, clean, most := p.w, true, p.askLocked()+overdue // clean: it says that it has given back all
	p.closed = true
	p.troubleLocked(0)
	w.judge.forgetLocked(p)
	w.running.Go(func() {
		p.awake()
		for _, m := range p.managers {
			w.inTurn(p.slot, 15)
			w.mu.Lock()
			began := p.momentLocked()
			w.mu.Unlock()
			err := m.Close(context.Background())
			w.inTurn(p.slot, 15)
			w.mu.Lock()
			took := p.ranLocked(began)
			w.noteLocked("%v has closed after %v: %v", p, took, err)
			clean = clean && err == nil
			if took > most {
				w.judge.failLocked("late return", "Close of %v took %v", p, took)
			}
			w.mu.Unlock()
		}
		p.closeClients()
		if clean {
			w.keepsNothing(p)
		}
		p.die()
	})
}

// keepsNothing finds what a process that has closed has left locked.
func (w *World) keepsNothing(p *process) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if p.bereft { // what was lost while Redis could not be reached is left to its TTL
		return
	}
	for _, u := range w.units {
		ends := slices.ContainsFunc(w.plan.Locks, func(l Lock) bool { return l.Name == u.Name && (l.Fixed || l.MaxHold > 0 || l.AtLeast > 0) })
		if u.s == nil || u.s.trouble > w.now() || ends { // a lease that has ended by itself is left to its TTL
			continue
		}
		u.dirty = true
		u.loadLocked()
		for _, h := range u.State.Holders {
			if prefix := p.prefix[u.s.n]; prefix != "" && strings.HasPrefix(h.ID, prefix) && !u.Stayed[h.ID] {
				w.judge.failLocked("left locked", "%v by %v, which has closed: %s", u, p, h.ID)
			}
		}
	}
}
