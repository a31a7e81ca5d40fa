package judge

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Exclusion finds two owners at a time, and leases that Redis does not know, or not for so long.
func (j *Judge) Exclusion(l *Lock) {
	now := j.Now()
	if now <= l.Excused {
		return
	}
	var valid []*Claim
	for _, c := range l.Claims {
		if (l.Members != nil || !c.Votes) && c.valid(now) {
			valid = append(valid, c)
		}
	}
	permits := 0
	for i, a := range valid {
		if permits += a.Permits; permits > l.Permits+l.Beside {
			j.Fail(l, "overlap", "%v: %s has permits, and so have others: %d of %d", l, a.Who, permits, l.Permits+l.Beside)
		}
		for _, b := range valid[:i] {
			if (a.Write || b.Write) && a.Owner != b.Owner {
				j.Fail(l, "overlap", "%v: %s and %s", l, a.Who, b.Who)
			}
		}
		if a.Lease != nil {
			j.covered(l, a)
		}
	}
	if l.Members == nil && l.Held() && l.State.Until == 0 && !l.State.Wrong {
		j.Fail(l, "ttl", "%v has none", l)
	}
}

// covered finds a lease that lasts for longer than Redis keeps the lock, or a majority of members do.
func (j *Judge) covered(l *Lock, c *Claim) {
	ends := c.Lease.Ends()
	if l.Members == nil {
		if why := l.Uncovered(c, ends); why != "" {
			j.Fail(l, "claim without hold", "%v: %s until %v, and Redis has %s", l, c.Who, ends, why)
		}
		return
	}
	votes, whys := 0, []string(nil)
	for _, m := range l.Members {
		if why := m.Uncovered(c, ends); why == "" {
			votes++
		} else {
			whys = append(whys, fmt.Sprintf("%v: %s", m, why))
		}
	}
	if 2*votes <= len(l.Members) {
		j.Fail(l, "claim without hold", "%v: %s until %v with %d votes: %s", l, c.Who, ends, votes, strings.Join(whys, "; "))
	}
}

// Uncovered says what Redis has instead of a hold for c that lasts until a deadline; "": it has one.
func (l *Lock) Uncovered(c *Claim, deadline time.Duration) string {
	why, missing := "none", max(1, c.Permits)
	for _, h := range slices.Concat(l.State.Holders, l.Promised) {
		switch {
		case l.Sides && c.Write && !isWriter(h.ID):
		case !c.Process.Owns(l, h.ID), c.Stands != nil && !c.Stands(h.ID):
			why = "another's, " + h.ID
		case h.Until < deadline:
			why = fmt.Sprintf("one until %v", h.Until)
		default:
			missing--
		}
	}
	if missing <= 0 {
		return ""
	}
	return why
}

// Token judges the fencing token of a grant: tokens grow.
func (j *Judge) Token(l *Lock, c *Claim, t uint64) {
	if j.Now() <= l.Excused { // the counter may have been lost, after this token or before it
		return
	}
	if t <= l.writer || c.Write && t <= l.reader {
		j.Fail(l, "token", "%v: %s has %d after %d of a writer, %d of a reader", l, c.Who, t, l.writer, l.reader)
	}
	if c.Write {
		l.writer = t
	} else {
		l.reader = max(l.reader, t)
	}
}

// TokenAgain judges that of a re-entry, which is its owner's.
func (j *Judge) TokenAgain(l *Lock, who string, t, owners uint64) {
	if t != owners {
		j.Fail(l, "token", "%s re-enters with %d, it has %d", who, t, owners)
	}
}
