package judge

import (
	"slices"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/internal/wire"
)

// GrantLasts is how long a grant by a release lasts if its waiter does not take it.
const GrantLasts = 2 * time.Second

// Lasts returns for how long something has been so: from its beginning or the end of what was wrong, whichever is later. If it is not so any
// more, its beginning is forgotten. After bound the judge looks again.
func (j *Judge) Lasts(l *Lock, what string, so bool, from, bound time.Duration) time.Duration {
	began, known := l.since[what]
	switch {
	case !so:
		if known {
			delete(l.since, what)
		}
		return 0
	case !known:
		began = j.Now()
		l.since[what] = began
	}
	began = max(began, from)
	if now := j.Now(); !known || now <= began+bound {
		j.Recheck(began + bound + 1)
	}
	return j.Now() - began
}

// ForgetAll ends what is not so any more because what it was about is gone.
func (l *Lock) ForgetAll(prefix string, but map[string]bool) {
	for what := range l.since {
		if id, ok := strings.CutPrefix(what, prefix); ok && !but[id] {
			delete(l.since, what)
		}
	}
}

// Stands is since when an id has stood in the queue of a lock.
func (l *Lock) Stands(id string) (since time.Duration, known bool) {
	since, known = l.since["stands "+id]
	return since, known
}

func (j *Judge) displaced(l *Lock) bool { return j.Now() < l.Displaced }

// holds finds what Redis has granted to a process that does not know it, or does not want it any more.
func (j *Judge) holds(l *Lock) {
	seen := map[string]bool{}
	for _, h := range l.State.Holders {
		p := j.Of(l, h.ID)
		if p == nil || l.Stayed[h.ID] || j.Now() <= l.Excused {
			continue
		}
		seen[h.ID] = true
		unused, waits, parted := !l.claimedBy(p), false, false
		for _, x := range l.Waits {
			if x.Process == p {
				waits, parted = true, parted || x.Parted || x.Once
			}
		}
		air := p.Air(l)
		bound, tidy := j.Outage(l), j.Outage(l)
		if air.Calm {
			bound, tidy = j.Prompt(l), j.Tidy(l)
			if j.displaced(l) { // to a place that was given up, and came back with the data: no caller waits for that one, and no process prolongs it
				bound, tidy = bound+GrantLasts, tidy+GrantLasts
			}
		}
		if d := j.Lasts(l, "unheard "+h.ID, unused && waits && !parted && air.Healthy && air.Hears >= 0, max(air.Since, air.Hears), bound); d > bound {
			j.Fail(l, "unheard", "%v: Redis granted it to %v %v ago, as %s, and a worker waits", l, p, d, h.ID)
		}
		tidy += j.lingers(l, h, p, air, unused && !waits)
		if d := j.Lasts(l, "forsaken "+h.ID, unused && !waits && air.Healthy, air.Since, tidy); d > tidy {
			j.Fail(l, "forsaken hold", "%v: %v has had it for %v, as %s, and no worker wants it", l, p, d, h.ID)
		}
	}
	l.ForgetAll("unheard ", seen)
	l.ForgetAll("forsaken ", seen)
}

// lingers finds a process that goes on keeping a lock, as h, although another one stands in the queue. It returns for how much longer
// than otherwise h may be there, and no caller want it: idle says that it is so.
func (j *Judge) lingers(l *Lock, h Holder, p Process, air Air, idle bool) time.Duration {
	if !wire.Lingers(h.ID) {
		return 0
	}
	wanted, from := false, air.Since
	for i, id := range l.State.Queue {
		if q := j.Of(l, id); q != nil && q != p && j.Now() < l.State.Kept[i] {
			wanted, from = true, max(from, q.Air(l).Since)
		}
	}
	bound := j.Outage(l)
	if air.Calm && !j.displaced(l) {
		bound = j.Prompt(l)
	}
	if d := j.Lasts(l, "wanted "+h.ID, idle && wanted && air.Healthy && air.Hears >= 0 && j.Now() > l.Excused, max(from, air.Hears), bound); d > bound {
		j.Fail(l, "kept from others", "%v: %v keeps it as %s for %v, and another process waits", l, p, h.ID, d)
	}
	return j.Lingers(p)
}

// places finds places in the queue that no caller wants.
func (j *Judge) places(l *Lock) {
	seen := map[string]bool{}
	for i, id := range l.State.Queue {
		p := j.Of(l, id)
		if p == nil || j.Now() <= l.Excused || j.Now() > l.State.Kept[i] {
			continue
		}
		seen[id] = true
		if j.displaced(l) {
			continue // what was given up may have come back with the data
		}
		if _, known := l.since["stands "+id]; !known {
			l.since["stands "+id] = j.Now()
		}
		air, bound := p.Air(l), j.Outage(l)
		if air.Calm {
			bound = j.Tidy(l)
		}
		if d := j.Lasts(l, "place "+id, !l.waitedBy(p) && air.Healthy, air.Since, bound); d > bound {
			j.Fail(l, "forsaken place", "%v: %s of %v stands in the queue for %v, and no worker waits", l, id, p, d)
		}
	}
	l.ForgetAll("place ", seen)
	l.ForgetAll("stands ", seen)
}

// wakes finds callers that wait for a lock that is free.
func (j *Judge) wakes(l *Lock) {
	seen := map[string]bool{}
	for _, x := range l.Waits {
		if x.Once || x.Parted && l.Members == nil {
			continue
		}
		w := j.Wakes(l, x)
		what := x.Who
		if w.Behind != "" {
			what += " behind " + w.Behind
		}
		seen[what] = true
		if d := j.Lasts(l, "free "+what, w.Free && j.Now() > l.Excused, max(w.From, l.Excused), w.Bound); d > w.Bound {
			j.Fail(l, "lost wake-up", "%v is free for %v, and %s waits", l, d, x.Who)
		}
	}
	l.ForgetAll("free ", seen)
}

// noteIdle takes note of since when nothing has been in a caller's way.
func (l *Lock) noteIdle(j *Judge) {
	busy := l.Held() || len(l.Promised) > 0 && l.Members == nil || len(l.State.Queue) > 0 || len(l.Claims) > 0 || slices.ContainsFunc(l.Waits, func(x *Wait) bool { return !x.Once })
	l.note(j, "idle", !busy)
	if l.Members == nil {
		l.note(j, "lingers", l.keptOnly(j))
	}
}

// keptOnly reports whether nothing is in a caller's way but processes that keep the lock, and would hear who wants it.
func (l *Lock) keptOnly(j *Judge) bool {
	if len(l.State.Holders) == 0 || len(l.Promised) > 0 || len(l.Claims) > 0 || j.Now() <= l.Excused || j.displaced(l) || len(l.State.Queue) > 0 ||
		slices.ContainsFunc(l.Waits, func(x *Wait) bool { return !x.Once || x.Unlocks }) {
		return false
	}
	return !slices.ContainsFunc(l.State.Holders, func(h Holder) bool {
		p := j.Of(l, h.ID)
		if p == nil || !wire.Lingers(h.ID) || l.Stayed[h.ID] {
			return true
		}
		if slices.ContainsFunc(l.Waits, func(x *Wait) bool { return x.Process == p && x.Since <= h.Since }) {
			return true // it may be that call's, whose answer is on its way
		}
		air := p.Air(l)
		return !air.Calm || air.Hears < 0
	})
}

// note takes note of since when something is so.
func (l *Lock) note(j *Judge, what string, so bool) {
	if !so {
		delete(l.since, what)
	} else if _, known := l.since[what]; !known {
		l.since[what] = j.Now()
	}
}
