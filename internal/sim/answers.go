package sim

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/judge"
)

// returnedLocked judges the return of a call that asked for a lock.
func (j *court) returnedLocked(a *attempt, took time.Duration, err error) {
	w, s, who := j.w, a.step, a.k.String()
	within := s.Limit == 0 || w.now()-a.began.at < s.Limit // of its context
	most := s.Limit + punctual
	if s.Way == ByCampaign { // it may have to unlock
		most += a.k.p.secondLocked() + overdue
	}
	if s.Limit > 0 && took > most {
		j.failLocked("late return", "%s of %s took %v of %v", s.Way, who, took, s.Limit)
	}
	if s.Way == ByTry && took > time.Duration(len(a.h.units))*3*a.k.p.secondLocked()+overdue {
		j.failLocked("late return", "TryLock of %s took %v", who, took)
	}
	if most := time.Duration(len(a.h.units)) * (w.trips(20) + 2*w.plan.Options.AckIn + a.unansweredLocked()); s.Way == ByTry && took > most && a.calmLocked() {
		j.failLocked("waits", "TryLock of %s took %v, and nothing was wrong", who, took)
	}
	switch {
	case err == nil:
	case errors.Is(err, holdfast.ErrWrongKind) && w.lossyLocked(): // an administrator has put something else there
	case errors.Is(err, holdfast.ErrClosed):
		if !a.k.p.closed {
			j.failLocked("odd error", "%s: %v", who, err)
		}
	case errors.Is(err, holdfast.ErrUnavailable):
		if within { // else the first answer may not have come
			j.unavailableLocked(a.k.p, a.h.units, who, err)
		}
	case !errors.Is(err, holdfast.ErrNotAcquired):
		j.failLocked("odd error", "%s: %v", who, err)
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		if within && a.k.p.ctx.Err() == nil && (a.under == nil || a.under.Err() == nil) {
			j.failLocked("odd error", "%s, whose context has not ended: %v", who, err)
		}
	default:
		if s.Way != ByTry {
			j.failLocked("odd error", "%s, which waits: %v", who, err)
		}
		if a.h.vote == nil && len(a.h.units) == 1 {
			u := a.h.units[0]
			j.Refused(&u.Lock, who, a.began.at, a.k.p.calmLocked(u.s) && a.k.p.deafened == 0)
		}
	}
}

// unavailableLocked judges an answer that says that Redis could not be asked.
func (j *court) unavailableLocked(p *process, units []*unit, who string, err error) {
	calm := true
	for _, u := range units {
		all := u.members
		if u.s != nil {
			all = []*unit{u}
		}
		for _, m := range all {
			calm = calm && p.calmLocked(m.s) && j.w.now() > m.Excused
		}
	}
	if calm {
		j.failLocked("unavailable without cause", "%s: %v", who, err)
	}
}

// calmLocked reports whether nothing was wrong during the call.
func (a *attempt) calmLocked() bool {
	return !slices.ContainsFunc(a.h.units, func(u *unit) bool { return !a.k.p.calmLocked(u.s) || a.k.w.now() <= u.Excused })
}

// busyLocked says that a release, or another call under the lease, is under way: until idleLocked the process may have the lock in Redis.
func (w *World) busyLocked(c *claim) *judge.Wait {
	x := &judge.Wait{Process: c.p, Who: c.Who + " unlocking", Since: w.now(), Once: true, Unlocks: true}
	for _, u := range c.units {
		u.Waits = append(u.Waits, x)
	}
	return x
}

func (w *World) idleLocked(x *judge.Wait) {
	for _, u := range w.units {
		u.Returns(x)
	}
}
