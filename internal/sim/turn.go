package sim

import (
	"strings"
	"time"
)

// turn is the moment that a process leaves to Redisson's after a release that they have heard of.
type turn struct {
	p  *process // that gave the lock back; nil: none has left the lock to Redisson's
	at time.Duration
}

// giveWay is how long the library waits from the answer to such a release on.
const giveWay = 2 * time.Millisecond

// turnLocked is called when a script of p has run. It finds a process that asks for a lock again, for callers who have waited all the
// while, before Redisson's can have taken it.
func (j *court) turnLocked(p *process, c call, touched []*unit) {
	for _, u := range touched {
		switch {
		case u.kind != Mutex: // of the others several requests can be under way
		case strings.HasSuffix(c.script, "_release"):
			if u.turn = (turn{}); !u.Held() && len(u.State.Queue) == 0 && u.heardByJavaLocked() && p.calmLocked(u.s) && j.w.now() > u.late {
				u.turn = turn{p, j.w.now()}
			}
		case strings.HasSuffix(c.script, "_acquire") && u.turn.p == p && j.w.now() < u.turn.at+giveWay && u.givesWay(p):
			j.failLocked("turn", "%v: %v asks for it %v after it has left it to Redisson's", u, p, j.w.now()-u.turn.at)
		}
	}
}

// givesWay reports whether callers of p wait, and none that asks once, which asks at once.
func (u *unit) givesWay(p *process) (waits bool) {
	for _, x := range u.Waits {
		switch {
		case x.Process != p || x.Unlocks:
		case x.Once:
			return false
		default:
			waits = true
		}
	}
	return waits
}

// heardByJavaLocked reports whether one of Redisson's listens to the channel of the lock.
func (u *unit) heardByJavaLocked() bool {
	for _, p := range u.w.all {
		for _, c := range p.links {
			if p.java != nil && c.s == u.s && c.channels[u.channel] {
				return true
			}
		}
	}
	return false
}

// stirLocked says that callers of p come or go: it may ask for them.
func (u *unit) stirLocked(p *process) {
	if u.turn.p == p {
		u.turn = turn{}
	}
}
