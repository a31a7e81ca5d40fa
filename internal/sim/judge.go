package sim

import (
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/judge"
)

// court feeds the judge: what callers were told, and what Redis has, after each event. It also has the rules of this world alone, about calls
// that no other world makes. World.mu guards it.
type court struct {
	*judge.Judge
	w *World
}

func newCourt(w *World) *court { return &court{judge.New(w), w} }

// failLocked takes note of the first violation of each rule.
func (j *court) failLocked(rule, format string, args ...any) { j.Fail(nil, rule, format, args...) }

// touchLocked says that anything on s may have changed.
func (j *court) touchLocked(s *server) {
	for _, u := range s.units {
		u.dirty = true
	}
}

// forgetLocked is called when p dies.
func (j *court) forgetLocked(p *process) {
	for _, u := range j.w.units {
		u.Forget(p)
	}
}

// lookLocked judges what is so now.
func (j *court) lookLocked() {
	if j.Closed {
		return
	}
	for _, u := range j.w.units {
		u.loadLocked()
		for _, t := range u.tickets {
			if t.stands && !t.Valid() {
				t.endLocked()
			}
			j.goneBackLocked(t)
		}
		j.Look(&u.Lock)
		if u.s != nil {
			j.lostAndKeptLocked(u)
			j.toldLocked(u)
			j.seatsLocked(u)
			j.unseenLocked(u)
		}
	}
}

// grantedLocked is called when a worker has been given a lease.
func (j *court) grantedLocked(c *claim, reentry bool) {
	j.Granted(&c.Claim)
	if !reentry {
		for _, u := range c.units {
			j.tooShortLocked(u, c)
		}
	}
	if !c.lease.Valid() && c.lease.Err() == nil {
		j.failLocked("invalid grant", "%s", c.Who)
	}
	if name := c.lease.Name(); len(c.units) == 1 && name != c.plan.Name {
		j.failLocked("name", "%s has a lease of %s", c.Who, name)
	}
	t := c.lease.Token()
	if want := c.plan.Fencing && c.plan.Kind != Multi && c.plan.Kind != Redlock; want != (t != 0) && !reentry {
		j.failLocked("token", "%s has %d", c.Who, t)
	}
	if t != 0 && !reentry {
		j.Token(&c.units[0].Lock, &c.Claim, t)
	}
	j.lookLocked()
	if !reentry {
		j.tenureLocked(c)
		j.acknowledgedLocked(c)
	}
}

// acknowledgedLocked finds grants that too few replicas know of.
func (j *court) acknowledgedLocked(c *claim) {
	u := c.units[0]
	if j.w.plan.Options.Replicas == 0 || u.s.acking >= j.w.plan.Options.Replicas {
		return
	}
	for _, h := range u.State.Holders {
		if c.p.Owns(&u.Lock, h.ID) && h.Since <= u.s.lacking {
			return
		}
	}
	j.failLocked("not acknowledged", "%s, and replicas lag since %v", c.Who, u.s.lacking)
}

// lossLocked judges what a caller was told of the end of its lease. valid says whether the lease was so when Unlock was
// called.
func (j *court) lossLocked(c *claim, err error, valid bool) {
	var lost *holdfast.LostError
	if !errors.As(err, &lost) || c.p.dead {
		return
	}
	c.p.bereft = true
	if c.p.woke >= c.Lease.Ends() {
		return // it stood still at the deadline, and says what it found out first: that, or that the lock was gone, or another owner's
	}
	began := c.Lease.Ends() - longestLease
	x := judge.Loss{Deadline: lost.Reason == holdfast.LostDeadline, Valid: valid, Trouble: c.p.grave >= began || c.plan.fixed(j.w.plan)}
	for _, u := range c.units {
		all := u.members
		if u.s != nil {
			all = []*unit{u}
		}
		for _, m := range all {
			x.Deleted = x.Deleted || m.lost >= c.Granted-longestLease && m.lost >= 0
			x.Trouble = x.Trouble || m.s.trouble >= began || x.Deleted
		}
	}
	j.Lost(&c.units[0].Lock, c.Who, x, err)
}

// fixed reports whether the lease is not renewed, or one of several is not.
func (l *Lock) fixed(p *Plan) bool {
	return l.Fixed || slices.ContainsFunc(l.Of, func(i int) bool { return p.Locks[i].fixed(p) })
}

// An owner id belongs to one hold, and is never used again: what is given back, or found to be gone, does not come back.

// beforeLocked is called before a script runs on s.
func (j *court) beforeLocked(c call, touched []*unit) {
	for _, u := range touched {
		j.Lapse(&u.Lock)
		switch {
		case strings.HasPrefix(c.script, "renew"), c.script == "permit_renew":
			u.dirty = true
			u.loadLocked()
		case c.script == "permit_set" && !u.s.refusesLocked():
			u.loadLocked()
			u.SetPermits(int(number(c.args[0])))
		}
		u.Asks(c.script, c.args, u.s.refusesLocked())
	}
}

// afterLocked is called when it has run.
func (j *court) afterLocked(c call, touched []*unit) {
	for _, u := range touched {
		switch {
		case strings.HasPrefix(c.script, "renew"), c.script == "permit_renew":
			before := u.State.Holders
			u.loadLocked()
			j.Prolonged(&u.Lock, before, c.script)
		case c.script == "force_release":
			j.freesLocked(u, c)
		case strings.HasSuffix(c.script, "_release"), strings.HasSuffix(c.script, "stay"):
			for _, id := range c.holders(c.args[0]) {
				u.givenBackLocked(id)
			}
			if strings.HasSuffix(c.script, "stay") {
				j.detachedLocked(u, c.holders(c.args[1]))
			}
		case strings.HasSuffix(c.script, "attach"):
			j.attachedLocked(u, c.holders(c.args[2]))
		case c.script == "leave":
			for _, tail := range c.args[5:] {
				u.givenBackLocked(c.args[4] + tail)
			}
		}
	}
}

// holders are those that an id in the arguments stands for, see judge.State.
func (c *call) holders(id string) []string {
	if strings.HasPrefix(c.script, "permit_") {
		return judge.PermitsOf(id)
	}
	return []string{id}
}

// givenBackLocked says that a script has given an owner id back, if the server has not refused that.
func (u *unit) givenBackLocked(id string) {
	u.loadLocked()
	if !u.s.refusesLocked() {
		u.w.judge.GivenBack(&u.Lock, id)
	}
}

// What the judge asks of the world.

func (w *World) Now() time.Duration { return w.now() }

func (w *World) Of(l *judge.Lock, id string) judge.Process {
	if p := l.Shell.(*unit).of(id); p != nil {
		return p
	}
	return nil
}

func (w *World) Recheck(at time.Duration) {
	if !w.rechecks[at] {
		w.rechecks[at] = true
		w.atLocked(at, func() { delete(w.rechecks, at) })
	}
}

func (w *World) Broken(v judge.Violation) { w.noteLocked("VIOLATION %s: %s", v.Rule, v.Text) }

func (p *process) Owns(l *judge.Lock, id string) bool {
	prefix := p.prefix[l.Shell.(*unit).s.n]
	return prefix != "" && strings.HasPrefix(id, prefix)
}

func (p *process) Air(l *judge.Lock) judge.Air {
	s := l.Shell.(*unit).s
	return judge.Air{Healthy: p.healthyLocked(s), Calm: p.calmLocked(s), Since: max(p.trouble, s.trouble), Hears: p.hearsLocked(s)}
}
