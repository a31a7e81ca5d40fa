package sim

import (
	"cmp"
	"errors"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/judge"
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

// outage is how long something may be so while, or soon after, something is wrong.
const outage = 15 * time.Second

// lostAndKeptLocked finds what a process has in Redis after the TTL of its lost lease.
func (j *court) lostAndKeptLocked(u *unit) {
	seen := map[string]bool{}
	for _, h := range u.State.Holders {
		p := u.of(h.ID)
		if p == nil || u.Stayed[h.ID] || u.w.now() <= u.Excused {
			continue
		}
		seen[h.ID] = true
		by, lost := u.lostLocked(p)
		waits := slices.ContainsFunc(u.Waits, func(x *judge.Wait) bool { return x.Process == p })
		bound := u.w.trips(12) + untaken
		if d := j.Lasts(&u.Lock, "kept "+h.ID, lost && h.Since < by && !waits && p.healthyLocked(u.s), max(p.astray, u.s.trouble, by), bound); d > bound {
			j.failLocked("lost and kept", "%v: %v has it as %s, %v after the TTL of its lost lease", u, p, h.ID, u.w.now()-by)
		}
	}
	u.ForgetAll("kept ", seen)
}

// untaken is by how much a process may be late in giving back what it has lost: a request can wait for a connection.
const untaken = 200 * time.Millisecond

// lostLocked returns when the TTL is over of the leases that p has lost by their deadlines, and not given up. What p has of the lock is given back
// then, although a late renewal may have prolonged it. false: one has not been lost so, or is not renewed, or there is none.
func (u *unit) lostLocked(p *process) (by time.Duration, lost bool) {
	for _, x := range u.Claims {
		c := x.Shell.(*claim)
		var why *holdfast.LostError
		switch {
		case c.p != p:
			continue
		case len(c.units) > 1 || c.plan.Fixed || !errors.As(c.lease.Err(), &why) || why.Reason != holdfast.LostDeadline:
			return 0, false
		}
		ttl := cmp.Or(c.plan.Lease, u.w.plan.Options.Lease)
		by, lost = max(by, c.Lease.Ends()+validity.Margin(ttl)), true
	}
	return by, lost
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
func (j *court) leftLocked(p *process, s *server) {
	if !p.calmLocked(s) { // a request over a connection that it takes for dead has been made anew
		return
	}
	for _, c := range p.links {
		if c.s == s && c.relying > 0 && !c.closed && !c.broken {
			j.failLocked("inbox left", "%v has said that it listens, in %d requests that are unanswered", p, c.relying)
		}
	}
}

// displaced reports whether a loss of data may still show in the queue: places have come back, or are gone, which their processes find when they
// keep them, at the latest when their patience is over.
func (u *unit) displaced() bool { return u.w.now() < u.Displaced }

func (w *World) Outage(*judge.Lock) time.Duration { return outage }

func (w *World) Tidy(*judge.Lock) time.Duration { return w.trips(30) + time.Second }

func (w *World) Lingers(judge.Process) time.Duration { return mostLinger }

func (w *World) Prompt(l *judge.Lock) time.Duration {
	if len(l.Shell.(*unit).observers) > 0 { // a leader, and an observer, ask once more
		return w.trips(20)
	}
	return w.trips(12)
}

// Wakes says how it is for a caller that waits.
func (w *World) Wakes(l *judge.Lock, x *judge.Wait) (wakes judge.Waking) {
	u, p := l.Shell.(*unit), x.Process.(*process)
	free, calm, from := u.freeLocked(x, p)
	bound := outage
	switch {
	case calm && u.s == nil:
		bound = w.trips(40) + longestRound
	case calm:
		bound = w.trips(12) + open
		if u.kind == RW {
			bound += untold
		}
		bound += u.spreadLocked()
	}
	behind := u.deadFirst()
	if behind != "" {
		bound += w.plan.Options.poll()
	}
	return judge.Waking{Free: free, From: max(from, p.trouble), Bound: bound, Behind: behind}
}

// untold is by how much a read-write lock may end earlier than its waiter was told (survivors in scripts/lib/rights.lua).
const untold = 100 * time.Millisecond

// deadFirst returns the id of the first in the queue, if only that one is notified and it is a waiter of a process that is dead, or that may not listen to
// it, because something was wrong; "": it is none. What makes a lock end earlier notifies that waiter alone. The others find out at their next poll.
func (u *unit) deadFirst() string {
	if !u.sooner || len(u.State.Queue) == 0 {
		return ""
	}
	if p := u.of(u.State.Queue[0]); p != nil && p.calmLocked(u.s) {
		return ""
	}
	return u.State.Queue[0]
}

// poll is how often a waiter asks at least.
func (o *Options) poll() time.Duration { return min(o.Poll, o.Patience/3) }

// spreadLocked is by how much a grant to a process that does not take it may end earlier than those behind it think, who know only what
// grants by their own options last.
func (u *unit) spreadLocked() time.Duration {
	if !slices.ContainsFunc(u.w.all, func(p *process) bool { return p.trouble > u.w.now() }) {
		return 0
	}
	least, most := judge.GrantLasts, time.Duration(0)
	for i := range u.w.plan.Locks {
		if l := &u.w.plan.Locks[i]; l.Name == u.Name {
			lasts := min(cmp.Or(l.Lease, u.w.plan.Options.Lease), judge.GrantLasts)
			least, most = min(least, lasts), max(most, lasts)
		}
	}
	return max(0, most-least)
}

// longestRound is how long the candidates of a Redlock may take to get out of each other's way: the first look around, and a second one.
const longestRound = 1500 * time.Millisecond

// freeLocked reports whether x waits for a lock that is free, whether all is calm where it is, and since when.
func (u *unit) freeLocked(x *judge.Wait, p *process) (free, calm bool, from time.Duration) {
	if u.s != nil {
		// A waiter whose process hears nothing is passed over; the pauses between two attempts to subscribe last up to a second.
		hears := p.hearsLocked(u.s)
		calm = p.calmLocked(u.s) && !u.displaced() && (hears >= 0 || p.deafened == 0 || u.w.now() > p.deafened+3*time.Second)
		return !u.Held() && p.healthyLocked(u.s), calm, max(x.Since, u.s.trouble, hears)
	}
	// Of a Redlock it is free if no candidate has it, and a majority can be asked.
	healthy, quiet := 0, 0
	for _, m := range u.members {
		if p.healthyLocked(m.s) {
			healthy++
		}
		if p.calmLocked(m.s) {
			quiet++
		}
	}
	for _, q := range u.w.all { // what was wrong with one has left votes
		from = max(from, q.trouble)
	}
	majority := len(u.members)/2 + 1
	from = max(from, u.staying)
	return len(u.Claims) == 0 && healthy >= majority, quiet >= majority, max(x.Since, from)
}

// open is how long a lock may be left open for others.
const open = 60 * time.Millisecond
