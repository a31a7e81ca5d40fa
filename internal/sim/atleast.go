package sim

import (
	"fmt"
	"slices"
	"time"
)

// mostAtLeast is the longest time for which a lock of a plan stays taken (WithHoldAtLeast).
const mostAtLeast = 400 * time.Millisecond

// stay is a lock that was given up, and stays taken until a time.
type stay struct {
	u      *unit
	who    string
	until  time.Duration
	said   bool   // Unlock has returned nil: Redis has the lock taken until then
	broken string // who was granted it before Unlock had returned; "": no owner
}

// staysLocked is called when Unlock is called, and returns what it must keep to: each of several locks stays taken by itself, and so does a majority.
// The end of a nested lease ends nothing.
func (c *claim) staysLocked() (all []*stay) {
	if c.nested || c.lease.Err() != nil {
		return nil
	}
	units := c.units
	if c.Votes {
		units = units[:1]
	}
	for i, u := range units {
		d := c.plan.AtLeast
		if c.plan.Kind == Multi {
			d = c.p.w.plan.Locks[c.plan.Of[i]].AtLeast
		}
		since, held := u.sinceLocked(c.p)
		if d == 0 || !held {
			continue
		}
		s := &stay{u: u, who: c.Who, until: since + d - c.p.w.trips(2)} // it has been granted so long before
		u.stays, u.staying = append(u.stays, s), max(u.staying, since+d)
		all = append(all, s)
	}
	return all
}

// sinceLocked returns since when Redis has the lock taken by p; of a Redlock, since when the first member has.
func (u *unit) sinceLocked(p *process) (since time.Duration, held bool) {
	members := u.members
	if u.s != nil {
		members = []*unit{u}
	}
	for _, m := range members {
		m.loadLocked()
		for _, h := range m.State.Holders {
			if m.of(h.ID) == p && (!held || h.Since < since) {
				since, held = h.Since, true
			}
		}
	}
	return since, held
}

// saidLocked is called when Unlock has returned.
func (j *court) saidLocked(all []*stay, err error) {
	for _, s := range all {
		switch {
		case err != nil:
			s.u.stays = slices.DeleteFunc(s.u.stays, func(x *stay) bool { return x == s })
		case s.broken != "":
			j.failLocked("held too short", "%s", s.broken)
		default:
			s.said = true
		}
	}
}

// tooShortLocked finds grants of a lock that has been given up and was to stay taken. Readers may come in after a downgrade.
func (j *court) tooShortLocked(u *unit, c *claim) {
	u.stays = slices.DeleteFunc(u.stays, func(s *stay) bool { return s.said && s.until <= j.w.now() || j.w.now() <= u.Excused })
	for _, s := range u.stays {
		if !c.Write || s.until <= j.w.now() {
			continue
		}
		if s.broken = fmt.Sprintf("%v: %s has it, and it was to stay taken by %s until %v", u, c.Who, s.who, s.until); s.said {
			j.failLocked("held too short", "%s", s.broken)
		}
	}
}

// tenure is the time for which one process passes a lock among its workers.
type tenure struct {
	id    string        // of the hold; "": there is none
	asked time.Duration // when it was passed on the first time after others had waited for so long that Redis had to be asked; 0: it was not
}

// tenureLocked is called when a worker has been given a lease. It finds a process that goes on passing the lock to its own workers although
// another one stands in the queue: it may do so for its slice, and then until Redis has answered whether others wait.
func (j *court) tenureLocked(c *claim) {
	u := c.units[0]
	if u.s == nil || len(c.units) > 1 || u.kind == Fair || !c.Write || len(u.State.Holders) != 1 || !c.p.calmLocked(u.s) {
		return
	}
	h := u.State.Holders[0]
	if u.tenure.id != h.ID {
		u.tenure = tenure{id: h.ID}
		return // Redis has granted it
	}
	from := time.Duration(-1)
	for _, id := range u.State.Queue {
		since, known := u.Stands(id)
		if p := u.of(id); known && p != nil && p != c.p && (from < 0 || since < from) {
			from = since
		}
	}
	allowed := max(from, h.Since) + 2*j.w.plan.Options.Slice + j.w.trips(6)
	if from < 0 || j.w.now() < allowed {
		return
	}
	switch now := j.w.now(); {
	case u.tenure.asked == 0:
		u.tenure.asked = now
	case now > u.tenure.asked+j.w.trips(6)+j.w.plan.Options.Slice:
		j.failLocked("not passed on", "%v: %s, while another process waits since %v", u, c.Who, from)
	}
}
