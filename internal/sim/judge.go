package sim

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast"
)

// judge compares what callers were told with what Redis has, after each event. World.mu guards it.
type judge struct {
	w      *World
	found  []Violation
	seen   map[string]bool
	closed bool // all that is to come is the end
}

// Violation is a promise that was broken.
type Violation struct {
	At   time.Duration
	Rule string
	Text string
}

func (v Violation) String() string { return fmt.Sprintf("%v: %s: %s", v.At, v.Rule, v.Text) }

func newJudge(w *World) *judge { return &judge{w: w, seen: map[string]bool{}} }

// failLocked takes note of the first violation of each rule.
func (j *judge) failLocked(rule, format string, args ...any) {
	if !j.seen[rule] {
		j.seen[rule] = true
		text := fmt.Sprintf(format, args...)
		j.w.noteLocked("VIOLATION %s: %s", rule, text)
		j.found = append(j.found, Violation{j.w.now(), rule, text})
	}
}

// touchLocked says that anything on s may have changed.
func (j *judge) touchLocked(s *server) {
	for _, u := range s.units {
		u.dirty = true
	}
}

// forgetLocked is called when p dies: its leases protect nothing, and no caller waits for its calls.
func (j *judge) forgetLocked(p *process) {
	for _, u := range j.w.units {
		u.claims = slices.DeleteFunc(u.claims, func(c *claim) bool { return c.p == p })
		u.waits = slices.DeleteFunc(u.waits, func(x *wait) bool { return x.p == p })
	}
}

// lookLocked judges what is so now.
func (j *judge) lookLocked() {
	if j.closed {
		return
	}
	for _, u := range j.w.units {
		u.loadLocked()
		j.exclusionLocked(u)
		u.idleLocked()
		if u.s != nil {
			j.holdsLocked(u)
			j.placesLocked(u)
			j.toldLocked(u)
		}
		j.wakeLocked(u)
	}
}

// exclusionLocked finds two owners at a time, and leases that Redis does not know, or not for so long.
func (j *judge) exclusionLocked(u *unit) {
	now := j.w.now()
	var valid []*claim
	for _, c := range u.claims {
		if (u.s == nil || !c.votes) && c.valid() {
			valid = append(valid, c)
		}
	}
	if now <= u.excused {
		return
	}
	for i, a := range valid {
		for _, b := range valid[:i] {
			if (a.write || b.write) && a.owner != b.owner {
				j.failLocked("overlap", "%v: %s and %s", u, a.who, b.who)
			}
		}
		if a.lease == nil {
			continue
		}
		deadline := a.lease.Deadline().Sub(j.w.began)
		switch {
		case u.s != nil:
			if why := u.uncovered(a, deadline); why != "" {
				j.failLocked("claim without hold", "%v: %s until %v, and Redis has %s", u, a.who, deadline, why)
			}
		default:
			votes, whys := 0, []string(nil)
			for _, m := range u.members {
				m.loadLocked()
				if why := m.uncovered(a, deadline); why == "" {
					votes++
				} else {
					whys = append(whys, fmt.Sprintf("%v: %s", m, why))
				}
			}
			if 2*votes <= len(u.members) {
				j.failLocked("claim without hold", "%v: %s until %v with %d votes: %s", u, a.who, deadline, votes, strings.Join(whys, "; "))
			}
		}
	}
	if u.s != nil && u.held() && u.state.until == 0 && !u.state.wrong {
		j.failLocked("ttl", "%v has none", u)
	}
}

// uncovered says what Redis has instead of a hold that lasts until the deadline of c; "": it has one.
func (u *unit) uncovered(c *claim, deadline time.Duration) string {
	why := "none"
	for _, h := range slices.Concat(u.state.holders, u.promised) {
		switch {
		case u.kind == RW && strings.HasSuffix(h.id, ":write") != c.write && c.write:
		case !strings.HasPrefix(h.id, c.p.prefix[u.s.n]) || c.p.prefix[u.s.n] == "":
			why = "another owner's, " + h.id
		case h.until < deadline:
			why = fmt.Sprintf("one until %v", h.until)
		default:
			return ""
		}
	}
	return why
}

// grantedLocked is called when a worker has been given a lease.
func (j *judge) grantedLocked(c *claim, reentry bool) {
	c.granted = j.w.now()
	for _, u := range c.units {
		u.claims = append(u.claims, c)
		if !reentry {
			j.tooShortLocked(u, c)
		}
	}
	if c.lease == nil {
		j.lookLocked()
		return
	}
	if !c.lease.Valid() && c.lease.Err() == nil {
		j.failLocked("invalid grant", "%s", c.who)
	}
	if name := c.lease.Name(); len(c.units) == 1 && name != c.plan.Name {
		j.failLocked("name", "%s has a lease of %s", c.who, name)
	}
	t := c.lease.Token()
	if want := c.plan.Fencing && c.plan.Kind != Multi && c.plan.Kind != Redlock; want != (t != 0) && !reentry {
		j.failLocked("token", "%s has %d", c.who, t)
	}
	if t != 0 && !reentry {
		j.tokenLocked(c.units[0], c, t)
	}
	j.lookLocked()
	if !reentry {
		j.tenureLocked(c)
		j.acknowledgedLocked(c)
	}
}

// acknowledgedLocked finds grants that too few replicas know of.
func (j *judge) acknowledgedLocked(c *claim) {
	u := c.units[0]
	if j.w.plan.Options.Replicas == 0 || u.s.acking >= j.w.plan.Options.Replicas {
		return
	}
	for _, h := range u.state.holders {
		if c.p.prefix[u.s.n] != "" && strings.HasPrefix(h.id, c.p.prefix[u.s.n]) && h.since <= u.s.lacking {
			return
		}
	}
	j.failLocked("not acknowledged", "%s, and replicas lag since %v", c.who, u.s.lacking)
}

// tokenLocked finds tokens that do not grow.
func (j *judge) tokenLocked(u *unit, c *claim, t uint64) {
	if j.w.now() <= u.excused { // the counter may have been lost, after this token or before it
		return
	}
	if t <= u.writer || c.write && t <= u.reader {
		j.failLocked("token", "%v: %s has %d after %d of a writer, %d of a reader", u, c.who, t, u.writer, u.reader)
	}
	if c.write {
		u.writer = t
	} else {
		u.reader = max(u.reader, t)
	}
}

// endsLocked is called when a worker is about to give its lease up.
func (j *judge) endsLocked(c *claim) {
	for _, u := range c.units {
		u.claims = slices.DeleteFunc(u.claims, func(x *claim) bool { return x == c })
		if !c.valid() {
			u.late = j.w.now() + j.w.trips(6)
		}
	}
}

// lossLocked judges what a caller was told of the end of its lease. valid says whether the lease was so when Unlock was
// called.
func (j *judge) lossLocked(c *claim, err error, valid bool) {
	var lost *holdfast.LostError
	if !errors.As(err, &lost) || c.p.dead {
		return
	}
	j.w.stats.Lost++
	c.p.bereft = true
	began := c.lease.Deadline().Sub(j.w.began) - longestLease
	deleted, trouble := false, c.p.grave >= began
	for _, u := range c.units {
		all := u.members
		if u.s != nil {
			all = []*unit{u}
		}
		for _, m := range all {
			deleted = deleted || m.lost >= c.granted-longestLease && m.lost >= 0
			trouble = trouble || m.s.trouble >= began || deleted
		}
	}
	if c.p.woke >= c.lease.Deadline().Sub(j.w.began) {
		return // it stood still at the deadline, and says what it found out first: that, or that the lock was gone, or another owner's
	}
	switch {
	case valid && lost.Reason == holdfast.LostDeadline:
		j.failLocked("false loss", "%s was valid, and Unlock says %v", c.who, err)
	case lost.Reason != holdfast.LostDeadline && !deleted, lost.Reason == holdfast.LostDeadline && !trouble && !c.plan.fixed(j.w.plan):
		j.failLocked("lost without cause", "%s: %v", c.who, err)
	}
}

// fixed reports whether the lease is not renewed, or one of several is not.
func (l *Lock) fixed(p *Plan) bool {
	return l.Fixed || slices.ContainsFunc(l.Of, func(i int) bool { return p.Locks[i].fixed(p) })
}
