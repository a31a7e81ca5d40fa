package sim

import (
	"slices"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/judge"
)

// unit is a lock on a server, or a Redlock over several, as the judge sees it, and what this world knows of it. World.mu guards it.
type unit struct {
	judge.Lock
	w       *World
	s       *server // nil: of a Redlock
	kind    Kind
	members []*unit // of a Redlock; else nil

	dirty   bool          // Redis may have something else than State says
	lost    time.Duration // when data of it was lost; -1: never
	tenure  tenure
	stays   []*stay
	tickets []*ticket
	met     map[*judge.Wait]time.Duration // when another caller wanted the lock the last time
	behind  map[string]time.Duration      // by the owner id that had it: when others stood in the queue the last time
	left    map[*process]time.Duration    // when it left the lock's channel, which it hears as long as a caller waits, and a moment longer

	observers []*judge.Observer // of the election
	untold    bool              // its seat became vacant by no request that says so, but by a release or the end of a TTL
	staying   time.Duration     // until then the last of those lasts
	forcer    *process          // that was told that it has freed the lock by force; nil: none
	forced    time.Duration     // when it was told that
	sooner    bool              // the lock ends, or has ended by itself, earlier than it was to: only the first in the queue is told of that
}

// claim is a lease that a worker has.
type claim struct {
	judge.Claim
	p      *process
	lease  *holdfast.Lease // nil: it is a ticket
	label  string          // of the context that it was asked for with
	nested bool            // under another lease
	units  []*unit         // of the lease
	plan   *Lock
	step   *Step
	heed   heed
	term   *holdfast.Term // nil: it leads no election
	says   []string       // what Redis may have of it
}

// lease is one as the judge sees it.
type lease struct {
	*holdfast.Lease
	w *World
}

func (l lease) Ends() time.Duration { return l.Deadline().Sub(l.w.began) }

// newClaim makes a claim of a worker's lease.
func newClaim(p *process, l *holdfast.Lease, owner string, write bool, h *handle, s *Step) *claim {
	c := &claim{Claim: judge.Claim{Process: p, Who: owner, Owner: owner, Write: write && h.plan.Kind != Semaphore, Permits: h.plan.Permits, Votes: h.vote != nil, Lease: lease{l, p.w}}, p: p, lease: l, units: h.all(), plan: h.plan, step: s}
	for _, u := range c.units {
		c.Locks = append(c.Locks, &u.Lock)
	}
	c.Shell = c
	return c
}

// unit returns what there is of a name on a server, which is made if there is none.
func (w *World) unit(n int, name string, k Kind) *unit {
	for _, u := range w.units {
		if u.Name == name && u.s == w.servers[n] {
			return u
		}
	}
	title := name
	if len(w.servers) > 1 {
		title += "@" + w.servers[n].addr
	}
	u := &unit{Lock: *judge.NewLock(name, title, k == RW, map[Kind]int{Semaphore: allPermits}[k]), w: w, s: w.servers[n], kind: k, lost: -1}
	u.met, u.behind, u.left = map[*judge.Wait]time.Duration{}, map[string]time.Duration{}, map[*process]time.Duration{}
	u.Most = mostPermits
	u.Shell = u
	w.units = append(w.units, u)
	u.s.units = append(u.s.units, u)
	return u
}

// election returns the unit of a Redlock.
func (w *World) election(name string, members []*unit) *unit {
	for _, u := range w.units {
		if u.s == nil && u.Name == name {
			return u
		}
	}
	u := &unit{Lock: *judge.NewLock(name, "redlock "+name, false, 0), w: w, kind: Redlock, members: members, lost: -1, met: map[*judge.Wait]time.Duration{}}
	for _, m := range members {
		u.Members = append(u.Members, &m.Lock)
	}
	u.Shell = u
	w.units = append(w.units, u)
	return u
}

// loadLocked reads what Redis has, if that can be something new.
func (u *unit) loadLocked() {
	now := u.w.now()
	if u.s == nil || !u.dirty && (u.State.Until == 0 || now < u.State.Until) {
		return
	}
	u.dirty = false
	do := u.s.redis.Do
	micros := u.s.clock()
	before := u.State
	u.w.judge.Wrote(&u.Lock, judge.Read(do, &u.Lock, now, func(millis int64) time.Duration { // when that is
		return now + time.Duration(millis*1000-micros)*time.Microsecond
	}))
	u.soonerLocked(before)
	for _, h := range u.State.Holders {
		if len(before.Queue)+len(u.State.Queue) > 0 {
			u.behind[h.ID] = now
		}
	}
	seat := judge.ReadSeat(do, &u.Lock)
	u.untold = seat.Term == 0 && (u.untold || u.Seat.Term != 0)
	u.Seat = seat
	if u.State.Until > 0 {
		u.w.atLocked(u.State.Until+time.Millisecond, func() { u.dirty = true })
	}
}

// soonerLocked finds out what the state says of an earlier end than the one before. A lock that a request has freed is not meant: a release looks for a waiter
// that hears.
func (u *unit) soonerLocked(before judge.State) {
	if u.kind == Semaphore {
		return // each release tells of itself
	}
	stays := func(h judge.Holder) bool { return u.Stayed[h.ID] || h.Since < u.w.now() }
	switch {
	case len(u.State.Holders) == 0:
		u.sooner = u.sooner && u.w.now() >= before.Until-inexact
	case u.State.Until < before.Until-inexact:
		u.sooner = slices.ContainsFunc(u.State.Holders, stays)
	case u.State.Until > before.Until+inexact:
		u.sooner = false
	}
}

// of returns the process that an owner id is of; nil: none that lives.
func (u *unit) of(id string) *process {
	for _, p := range u.w.all {
		if p.slot >= len(u.w.plan.Processes) {
			break // the one that looks whether all is well in the end
		}
		if prefix := p.prefix[u.s.n]; !p.dead && prefix != "" && strings.HasPrefix(id, prefix) {
			return p
		}
	}
	return nil
}

// loseLocked says that data of the lock may be lost now.
func (u *unit) loseLocked() {
	u.lost = u.w.now()
	span := u.lost + u.w.plan.lossSpan()
	u.Lose(span, span+u.w.plan.Options.Patience)
	u.dirty = true
	for _, t := range u.tickets { // it may have gone, or come back
		t.endLocked()
	}
}

// lossSpan is for how long a loss of data can show: until each lease that was granted before has ended.
func (p *Plan) lossSpan() time.Duration { return longestLease + 3*time.Second }
