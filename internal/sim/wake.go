package sim

import (
	"cmp"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/validity"
)

// How long something may be so while nothing is wrong. Each bound is in trips over the network: those of a request and its
// reply, of a message, and of a repetition of them.
func (w *World) trips(n int) time.Duration {
	d := time.Duration(n) * w.plan.Latency
	if w.plan.Spikes {
		d += 60 * w.plan.Latency
	}
	return d + 2*time.Millisecond
}

// grantLasts is how long a grant by a release lasts if its waiter does not take it.
const grantLasts = 2 * time.Second

// outage is how long something may be so while, or soon after, something is wrong.
const outage = 15 * time.Second

// lasts returns for how long something has been so: from its beginning or the end of what was wrong, whichever is later. If it is not so any
// more, its beginning is forgotten. After bound the judge looks again.
func (u *unit) lasts(what string, so bool, from, bound time.Duration) time.Duration {
	began, known := u.since[what]
	switch {
	case !so:
		if known {
			delete(u.since, what)
		}
		return 0
	case !known:
		began = u.w.now()
		u.since[what] = began
	}
	began = max(began, from)
	if now := u.w.now(); !known || now <= began+bound {
		u.w.recheckLocked(began + bound + 1)
	}
	return u.w.now() - began
}

// recheckLocked has the judge look at a time.
func (w *World) recheckLocked(at time.Duration) {
	if !w.rechecks[at] {
		w.rechecks[at] = true
		w.atLocked(at, func() { delete(w.rechecks, at) })
	}
}

// holdsLocked finds what Redis has granted to a process that does not know it, or does not want it any more.
func (j *judge) holdsLocked(u *unit) {
	seen := map[string]bool{}
	for _, h := range u.state.holders {
		p := u.of(h.id)
		if p == nil || u.stayed[h.id] || u.w.now() <= u.excused {
			continue
		}
		seen[h.id] = true
		unused := !u.claimedBy(p)
		waits, parted := false, false
		for _, x := range u.waits {
			if x.p == p {
				waits, parted = true, parted || x.parted || x.once
			}
		}
		from := max(p.trouble, u.s.trouble, 0)
		calm := p.calmLocked(u.s)
		bound := outage
		if calm {
			bound = u.w.trips(12)
			if u.w.plan.Shape == BesideJava {
				bound += u.w.plan.open()
			}
			if u.displaced() {
				bound += grantLasts // to a place that was given up, and came back with the data: no caller waits for that one
			}
		}
		hears := p.hearsLocked(u.s)
		if d := u.lasts("unheard "+h.id, unused && waits && !parted && p.healthyLocked(u.s) && hears >= 0, max(from, hears), bound); d > bound {
			j.failLocked("unheard", "%v: Redis granted it to %v %v ago, as %s, and a worker waits", u, p, d, h.id)
		}
		if calm {
			bound = u.w.trips(30) + time.Second
			if u.displaced() {
				bound += grantLasts // likewise: no process prolongs it
			}
		}
		bound += j.lingersLocked(u, h, p, unused && !waits)
		if d := u.lasts("forsaken "+h.id, unused && !waits && p.healthyLocked(u.s), from, bound); d > bound {
			j.failLocked("forsaken hold", "%v: %v has had it for %v, as %s, and no worker wants it", u, p, d, h.id)
		}
		by, lost := u.lostLocked(p)
		bound = u.w.trips(12) + untaken
		if d := u.lasts("kept "+h.id, lost && h.since < by && !waits && p.healthyLocked(u.s), max(p.astray, u.s.trouble, by), bound); d > bound {
			j.failLocked("lost and kept", "%v: %v has it as %s, %v after the TTL of its lost lease", u, p, h.id, u.w.now()-by)
		}
	}
	u.forget("unheard ", seen)
	u.forget("forsaken ", seen)
	u.forget("kept ", seen)
}

// untaken is by how much a process may be late in giving back what it has lost: a request can wait for a connection.
const untaken = 200 * time.Millisecond

// lostLocked returns when the TTL is over of the leases that p has lost by their deadlines, and not given up. What p has of the lock is given back
// then, although a late renewal may have prolonged it. false: one has not been lost so, or is not renewed, or there is none.
func (u *unit) lostLocked(p *process) (by time.Duration, lost bool) {
	for _, c := range u.claims {
		var why *holdfast.LostError
		switch {
		case c.p != p:
			continue
		case c.lease == nil || len(c.units) > 1 || c.plan.Fixed || !errors.As(c.lease.Err(), &why) || why.Reason != holdfast.LostDeadline:
			return 0, false
		}
		ttl := cmp.Or(c.plan.Lease, u.w.plan.Options.Lease)
		by, lost = max(by, c.lease.Deadline().Sub(u.w.began)+validity.Margin(ttl)), true
	}
	return by, lost
}

// forget ends what is not so any more because what it was about is gone.
func (u *unit) forget(prefix string, but map[string]bool) {
	for what := range u.since {
		if id, ok := strings.CutPrefix(what, prefix); ok && !but[id] {
			delete(u.since, what)
		}
	}
}

// hearsLocked returns since when s would tell p of a grant; -1: it would not.
func (p *process) hearsLocked(s *server) time.Duration {
	since := time.Duration(-1)
	for _, c := range p.links {
		if c.s == s && c.inbox >= 0 && !c.down.hole {
			since = c.inbox
		}
	}
	return since
}

// leftLocked is called when s hears that p leaves its inbox. A release takes a process for dead that has said that it listens and does not, so none leaves
// while such a request of it is unanswered.
func (j *judge) leftLocked(p *process, s *server) {
	if !p.calmLocked(s) { // a request over a connection that it takes for dead has been made anew
		return
	}
	for _, c := range p.links {
		if c.s == s && c.relying > 0 && !c.closed && c.broken == nil {
			j.failLocked("inbox left", "%v has said that it listens, in %d requests that are unanswered", p, c.relying)
		}
	}
}

// placesLocked finds places in the queue that no worker wants.
func (j *judge) placesLocked(u *unit) {
	seen := map[string]bool{}
	for i, id := range u.state.queue {
		p := u.of(id)
		if p == nil || u.w.now() <= u.excused || u.w.now() > u.state.kept[i] {
			continue
		}
		seen[id] = true
		if u.displaced() {
			continue // what was given up may have come back with the data
		}
		if _, known := u.since["stands "+id]; !known {
			u.since["stands "+id] = u.w.now()
		}
		bound := outage
		if p.calmLocked(u.s) {
			bound = u.w.trips(30) + time.Second
		}
		if d := u.lasts("place "+id, !u.waitedBy(p) && p.healthyLocked(u.s), max(p.trouble, u.s.trouble), bound); d > bound {
			j.failLocked("forsaken place", "%v: %s of %v stands in the queue for %v, and no worker waits", u, id, p, d)
		}
	}
	u.forget("place ", seen)
	u.forget("stands ", seen)
}

// displaced reports whether a loss of data may still show in the queue: places have come back, or are gone, which their processes find when they
// keep them, at the latest when their patience is over.
func (u *unit) displaced() bool {
	return u.lost >= 0 && u.w.now() < u.lost+u.w.plan.Options.Patience+u.w.plan.lossSpan()
}

// wakeLocked finds callers that wait for a lock that is free.
func (j *judge) wakeLocked(u *unit) {
	seen := map[string]bool{}
	for _, x := range u.waits {
		if x.once || x.parted && u.s != nil {
			continue
		}
		free, calm, from := u.freeLocked(x)
		bound := outage
		switch {
		case calm && u.s == nil:
			bound = u.w.trips(40) + longestRound
		case calm:
			bound = u.w.trips(12) + u.w.plan.open()
			if u.kind == RW {
				bound += untold
			}
			bound += u.spreadLocked()
		}
		what := x.who
		if first := u.foreignFirst(); first != "" {
			what, bound = what+" behind "+first, bound+offered
		} else if first := u.deadFirst(); first != "" {
			what, bound = what+" behind "+first, bound+u.w.plan.Options.poll()
		}
		seen[what] = true
		if d := u.lasts("free "+what, free && u.w.now() > u.excused, max(from, x.p.trouble, u.excused), bound); d > bound {
			j.failLocked("lost wake-up", "%v is free for %v, and %s waits", u, d, x.who)
		}
	}
	u.forget("free ", seen)
}

// untold is by how much a read-write lock may end earlier than its waiter was told (survivors in scripts/prelude/rights.lua).
const untold = 100 * time.Millisecond

// offered is for how long a lock is left to one of Redisson's that is the first in the queue.
const offered = 5 * time.Second

// foreignFirst returns the id of one of Redisson's that is the first in the queue; "": it is none.
func (u *unit) foreignFirst() string {
	if len(u.state.queue) == 0 || strings.HasPrefix(u.state.queue[0], "hf-") {
		return ""
	}
	return u.state.queue[0]
}

// deadFirst returns the id of the first in the queue, if only that one is notified and it is a waiter of a process that is dead, or that may not listen to
// it, because something was wrong; "": it is none. A release by Redisson notifies that waiter alone, and so does what makes a lock end earlier. The others
// find out at their next poll.
func (u *unit) deadFirst() string {
	if u.w.plan.Shape != BesideJava && !u.sooner || len(u.state.queue) == 0 || u.foreignFirst() != "" {
		return ""
	}
	if p := u.of(u.state.queue[0]); p != nil && p.calmLocked(u.s) {
		return ""
	}
	return u.state.queue[0]
}

// poll is how often a waiter asks at least.
func (o *Options) poll() time.Duration { return min(o.Poll, o.Patience/3) }

// spreadLocked is by how much a grant to a process that does not take it may end earlier than those behind it think, who know only what
// grants by their own options last.
func (u *unit) spreadLocked() time.Duration {
	if !slices.ContainsFunc(u.w.all, func(p *process) bool { return p.trouble > u.w.now() }) {
		return 0
	}
	least, most := grantLasts, time.Duration(0)
	for i := range u.w.plan.Locks {
		if l := &u.w.plan.Locks[i]; l.Name == u.name {
			lasts := min(cmp.Or(l.Lease, u.w.plan.Options.Lease), grantLasts)
			least, most = min(least, lasts), max(most, lasts)
		}
	}
	return max(0, most-least)
}

// longestRound is how long the candidates of a Redlock may take to get out of each other's way: the first look around, and a second one.
const longestRound = 1500 * time.Millisecond

// freeLocked reports whether x waits for a lock that is free, whether all is calm where it is, and since when.
func (u *unit) freeLocked(x *wait) (free, calm bool, from time.Duration) {
	if u.s != nil {
		// A waiter whose process hears nothing is passed over; the pauses between two attempts to subscribe last up to a second.
		hears := x.p.hearsLocked(u.s)
		calm = x.p.calmLocked(u.s) && !x.p.lamedLocked() && !u.displaced() && (hears >= 0 || x.p.deafened == 0 || u.w.now() > x.p.deafened+3*time.Second)
		return !u.held() && x.p.healthyLocked(u.s), calm, max(x.since, u.s.trouble, hears)
	}
	// Of a Redlock it is free if no candidate has it, and a majority can be asked.
	healthy, quiet := 0, 0
	for _, m := range u.members {
		if x.p.healthyLocked(m.s) {
			healthy++
		}
		if x.p.calmLocked(m.s) {
			quiet++
		}
	}
	for _, p := range u.w.all { // what was wrong with one has left votes
		from = max(from, p.trouble)
	}
	majority := len(u.members)/2 + 1
	from = max(from, u.staying)
	return len(u.claims) == 0 && healthy >= majority, quiet >= majority, max(x.since, from)
}

// lamedLocked reports whether one of Redisson's has a connection over which nothing comes any more, on which a request of it can wait long.
func (p *process) lamedLocked() bool {
	return p.java != nil && slices.ContainsFunc(p.links, func(c *link) bool { return c.up.hole || c.down.hole })
}

// open is how long a lock may be left open for others.
func (p *Plan) open() time.Duration {
	if p.Shape == BesideJava {
		return 600 * time.Millisecond
	}
	return 60 * time.Millisecond
}
