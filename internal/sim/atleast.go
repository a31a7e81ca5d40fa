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
	who    string
	until  time.Duration
	said   bool   // Unlock has returned nil: Redis has the lock taken until then
	broken string // who was granted it before Unlock had returned; "": no owner
}

// staysLocked is called when Unlock is called, and returns what it must keep to; nil: nothing. The end of a nested lease ends nothing.
func (c *claim) staysLocked() *stay {
	if c.plan.AtLeast == 0 || c.nested || c.lease == nil || c.lease.Err() != nil {
		return nil
	}
	s := &stay{who: c.who, until: c.granted + c.plan.AtLeast - c.p.w.trips(2)} // it has been granted so long before
	u := c.units[0]
	u.stays = append(u.stays, s)
	return s
}

// saidLocked is called when Unlock has returned.
func (j *judge) saidLocked(u *unit, s *stay, err error) {
	switch {
	case s == nil:
	case err != nil:
		u.stays = slices.DeleteFunc(u.stays, func(x *stay) bool { return x == s })
	case s.broken != "":
		j.failLocked("held too short", "%s", s.broken)
	default:
		s.said = true
	}
}

// tooShortLocked finds grants of a lock that has been given up and was to stay taken. Readers may come in after a downgrade.
func (j *judge) tooShortLocked(u *unit, c *claim) {
	u.stays = slices.DeleteFunc(u.stays, func(s *stay) bool { return s.said && s.until <= j.w.now() || j.w.now() <= u.excused })
	for _, s := range u.stays {
		if !c.write || s.until <= j.w.now() {
			continue
		}
		if s.broken = fmt.Sprintf("%v: %s has it, and it was to stay taken by %s until %v", u, c.who, s.who, s.until); s.said {
			j.failLocked("held too short", "%s", s.broken)
		}
	}
}

// stayedLocked is called when a script has left a lock taken: by an owner id that no process has.
func (u *unit) stayedLocked(old, stays string) {
	u.givenBackLocked(old)
	u.stayed[stays] = true
}
