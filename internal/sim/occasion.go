package sim

import (
	"time"
)

// Faults that wait for the moment at which they show most.

// lateRenewal is the name of one.
const lateRenewal = "late renewal"

// renewedLocked is called when s has executed a renewal of p. If p is to renew a lease too late, and has one that it will not give up when it has ended,
// nothing comes through until the moment between its deadline and the end of its TTL: the next renewals are executed then.
func (p *process) renewedLocked(s *server) {
	now := p.w.now()
	for _, u := range s.units {
		for _, x := range u.Claims {
			c := x.Shell.(*claim)
			if p.late == 0 || c.p != p || len(c.units) > 1 || !c.step.Over || p.w.healed {
				continue
			}
			deadline, until := c.Lease.Ends(), u.State.Until
			if now < deadline && deadline < until && c.Granted+c.step.Hold > until+time.Second {
				p.late--
				p.w.noteLocked("%v renews %s too late", p, c.Who)
				executed := (deadline + until) / 2
				p.w.faulty = max(p.w.faulty, executed)
				p.partLocked(s, executed-now, false)
			}
		}
	}
}

// acquiredLocked is called when a request for u by id has been executed, before its answer is sent. If the process is to close at a grant, and this is one,
// it closes now. The answer is lost, and the process finds out by itself that its connection is dead.
func (c *link) acquiredLocked(u *unit, id string) {
	p := c.p
	granted := u.Holder(id) != nil
	if len(p.closings) == 0 || !granted || p.closed || p.dead || p.w.healed {
		return
	}
	p.replaceLocked(p.closings[0])
	p.closings = nil
	p.w.noteLocked("%v closes, and does not hear of %s", p, id)
	p.graveLocked(2 * time.Second)
	p.closeLocked()
	c.swallow, c.afterwards = true, "hole"
}
