package chaos

import (
	"context"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

// calls matches the calls for a lock of scripts whose name contains part.
func calls(part, lock string) redistest.Match {
	return func(cmd []string) bool {
		return strings.Contains(redistest.ScriptName(cmd), part) && slices.Contains(cmd, lock)
	}
}

// fault is one kind of trouble.
type fault struct {
	name   string
	weight int
	do     func(n *nemesis) Fault
}

// faults are drawn by weight.
var faults = []fault{
	{"kill connections", 15, func(n *nemesis) Fault { return n.kill("normal") }},
	{"kill subscriptions", 15, func(n *nemesis) Fault { return n.kill("pubsub") }},
	{"pause writes", 10, func(n *nemesis) Fault {
		n.admin("client", "pause", 400, "write")
		n.rest(400 * time.Millisecond)
		return everywhere
	}},
	{"stop the server", 15, func(n *nemesis) Fault {
		n.srv.Pause()
		n.rest(400 * time.Millisecond)
		n.srv.Resume()
		return everywhere
	}},
	{"kill and restart the server", 2, func(n *nemesis) Fault { n.srv.Restart(); return everywhere }},
	{"flush scripts", 5, func(n *nemesis) Fault { n.admin("script", "flush"); return everywhere }},
	{"black hole", 15, func(n *nemesis) Fault {
		c := n.someone()
		c.proxy.BlackHole(true)
		n.rest(700 * time.Millisecond)
		c.proxy.BlackHole(false)
		return Fault{Proc: c.ID}
	}},
	{"lose an acquire's reply", 10, func(n *nemesis) Fault { return n.lose("acquire", (*redistest.Proxy).LoseReply) }},
	{"lose a release's reply", 10, func(n *nemesis) Fault { return n.lose("release", (*redistest.Proxy).LoseReply) }},
	{"lose a release", 5, func(n *nemesis) Fault { return n.lose("release", (*redistest.Proxy).LoseRequest) }},
	{"swallow a renewal's reply", 5, func(n *nemesis) Fault {
		c := n.someone()
		c.proxy.SwallowReply(calls("renew", steadyName(c.ID)), 1)
		n.rest(300 * time.Millisecond)
		return Fault{Proc: c.ID}
	}},
	{"late grant", 5, func(n *nemesis) Fault { return n.hold("acquire", (*redistest.Proxy).HoldFirstReply) }},
	{"late request", 5, func(n *nemesis) Fault { return n.hold("acquire", (*redistest.Proxy).HoldFirstRequest) }},
	{"late release", 5, func(n *nemesis) Fault { return n.hold("release", (*redistest.Proxy).HoldFirstRequest) }},
	{"slow network", 5, func(n *nemesis) Fault {
		c := n.someone()
		c.proxy.Delay(5*time.Millisecond, 40*time.Millisecond)
		n.rest(600 * time.Millisecond)
		c.proxy.Delay(0, 0)
		return Fault{Proc: c.ID}
	}},
	{"stop a client", 5, func(n *nemesis) Fault {
		c := n.someone()
		c.role.Pause()
		n.rest(3 * ttl / 2)
		c.role.Resume()
		return Fault{Proc: c.ID}
	}},
	{"kill a client", 3, func(n *nemesis) Fault {
		c := n.someone()
		n.replace(c)
		return Fault{Proc: c.ID}
	}},
	{"delete a lock", 3, func(n *nemesis) Fault {
		name := n.anyLock()
		n.admin("del", name)
		return Fault{Proc: -1, Name: name}
	}},
	{"force a lock free", 3, func(n *nemesis) Fault {
		name := n.anyLock()
		n.force(name)
		return Fault{Proc: -1, Name: name}
	}},
	{"spoil a lock", 3, func(n *nemesis) Fault {
		c := n.someone()
		name := decoyName(c.ID)
		n.admin("set", name, "spoilt", "px", 900) // gone again while the name is excused
		return Fault{Proc: -1, Name: name}
	}},
}

// everywhere is a fault of the server.
var everywhere = Fault{Proc: -1}

// nemesis breaks things. It belongs to the test's goroutine.
type nemesis struct {
	*run
	rng *rand.Rand
}

// haunt commits faults until the time is over, one at least: each kind once, the likely ones mostly
// first, and then by weight alone.
func (n *nemesis) haunt(until time.Time) {
	wanted := regexp.MustCompile(n.cfg.Faults)
	all := slices.DeleteFunc(slices.Clone(faults), func(f fault) bool { return !wanted.MatchString(f.name) })
	deck := slices.Clone(all)
	for again := true; again; again = time.Now().Before(until) {
		if len(deck) > 0 {
			i := n.draw(deck)
			n.commit(deck[i])
			deck = slices.Delete(deck, i, i+1)
		} else {
			n.commit(all[n.draw(all)])
		}
		n.rest(300*time.Millisecond + time.Duration(n.rng.Int64N(int64(500*time.Millisecond))))
	}
}

// draw chooses by weight.
func (n *nemesis) draw(deck []fault) int {
	total := 0
	for _, f := range deck {
		total += f.weight
	}
	dice := n.rng.IntN(total)
	for i, f := range deck {
		if dice -= f.weight; dice < 0 {
			return i
		}
	}
	panic("no fault has weight")
}

func (n *nemesis) commit(f fault) {
	start := now()
	done := f.do(n)
	done.Kind, done.Start, done.End = f.name, start, now()
	n.h.Faults = append(n.h.Faults, done)
}

// rest is a fault's duration, or the pause between two.
func (n *nemesis) rest(d time.Duration) { <-time.After(d) }

func (n *nemesis) someone() *member { return n.members[n.rng.IntN(len(n.members))] }

// admin asks the server directly. A server that a fault has just hit may not answer.
func (n *nemesis) admin(args ...any) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	_ = n.srv.Admin().Do(ctx, args...).Err()
}

func (n *nemesis) kill(kind string) Fault {
	n.admin("client", "kill", "type", kind)
	return everywhere
}

// lose sets a rule for one request that is about to come.
func (n *nemesis) lose(part string, rule func(*redistest.Proxy, redistest.Match, int)) Fault {
	c := n.someone()
	rule(c.proxy, calls(part, n.busy()), 1)
	n.rest(100 * time.Millisecond)
	return Fault{Proc: c.ID}
}

// hold keeps one request or reply back for up to a lease and a half.
func (n *nemesis) hold(part string, rule func(*redistest.Proxy, redistest.Match) *redistest.Gate) Fault {
	c := n.someone()
	gate := rule(c.proxy, calls(part, n.busy()))
	n.rest(time.Duration(n.rng.Int64N(int64(3 * ttl / 2))))
	gate.Release()
	return Fault{Proc: c.ID}
}

// force is an operator who frees a lock. As with admin, there may be no answer.
func (n *nemesis) force(name string) {
	m, err := holdfast.New(n.srv.Admin())
	if err != nil {
		n.Fatal(err)
	}
	_, _ = m.ForceUnlock(context.Background(), name)
	_ = m.Close(context.Background())
}

func (n *nemesis) anyLock() string {
	names := lockNames()
	return names[n.rng.IntN(len(names))]
}

func (n *nemesis) busy() string { return Kinds[n.rng.IntN(len(Kinds))].busy() }
