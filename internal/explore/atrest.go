package explore

import (
	"slices"
	"strings"
	"time"
)

// What is judged when nothing happens any more, for a process or for all.

// clean: a process that is at rest has nothing in Redis.
func (j *judge) clean(p *process) {
	w := j.w
	if !p.isIdle() || slices.ContainsFunc(w.flights, func(f *flight) bool { return f.p == p }) ||
		slices.ContainsFunc(w.callers, func(c *caller) bool {
			return !c.Java && c.p() == p && (c.phase == inside || c.phase == waiting || c.AtLeast > 0)
		}) {
		return
	}
	for _, k := range w.db.Keys(w.now) {
		if k.Kind == "zset" {
			continue // tombstones; and the list tells whether there is a place
		}
		for _, id := range k.List {
			if strings.HasPrefix(id, p.says.Owners) {
				j.says("process %d is at rest, and %s has its %s", p.id, k.Name, id)
			}
		}
	}
}

// all judges what is left when no caller is left.
func (j *judge) all() {
	w := j.w
	if len(w.flights) > 0 || slices.ContainsFunc(w.procs, func(p *process) bool { return p.state == dead || !p.isIdle() }) ||
		slices.ContainsFunc(w.callers, func(c *caller) bool { return c.phase != gone || c.AtLeast > 0 }) {
		return
	}
	for _, k := range w.db.Keys(w.now) {
		if !strings.HasPrefix(k.Name, "redisson_lock_token") && !strings.HasPrefix(k.Name, "holdfast_tombstones") {
			j.says("%s is left behind", k.Name)
		}
	}
}

// idle is called when time has to pass because nothing is on its way. If nothing has gone wrong, no waiter waits for that.
func (j *judge) idle(next time.Time) {
	w := j.w
	if w.faults > 0 || j.slow || len(j.expired) > 0 || next.Sub(w.now) <= 5*time.Millisecond {
		return
	}
	for _, c := range w.callers {
		if c.Java || c.phase != waiting {
			continue
		}
		key := w.plan.Locks[c.Locks[min(len(c.leases), len(c.Locks)-1)]].Name
		if !w.db.Has(key, w.now) {
			j.says("the lock is free, and caller %d waits until time has passed", c.id)
		}
		for _, k := range w.db.Keys(w.now) {
			if k.Name != key {
				continue
			}
			for i := 0; i < len(k.List); i += 2 {
				if id := k.List[i]; strings.TrimSuffix(id, ":write") == c.claim() {
					j.says("the lock was granted to caller %d, which does not know", c.id)
				} else if p := j.forsaken(id); p != nil {
					j.says("caller %d waits, and process %d keeps the lock for no caller", c.id, p.id)
				}
			}
		}
	}
}

// forsaken returns the process that an owner id is of, if none of its callers has or wants a lock; nil: one does.
func (j *judge) forsaken(id string) *process {
	for _, p := range j.w.procs {
		if strings.HasPrefix(id, p.says.Owners) && !slices.ContainsFunc(j.w.callers, func(c *caller) bool {
			return !c.Java && c.p() == p && (c.phase == waiting || c.phase == inside || c.AtLeast > 0)
		}) {
			return p
		}
	}
	return nil
}

// patience is called when time has to pass. Nothing in these worlds lasts for longer.
func (j *judge) patience() {
	const most = 5 * time.Minute
	for _, c := range j.w.callers {
		if c.phase == waiting && j.w.now.Sub(epoch) > most {
			j.says("caller %d waits forever", c.id)
		}
	}
}

// passing is called before time passes.
func (j *judge) passing(to time.Time) {
	for _, k := range j.w.db.Keys(j.w.now) {
		if k.Kind == "hash" && k.Expires != 0 && k.Expires <= to.UnixMilli() {
			for i := 0; i < len(k.List); i += 2 {
				j.expired[strings.TrimSuffix(k.List[i], ":write")] = true
			}
		}
		if k.Kind == "string" && k.Expires != 0 && k.Expires <= to.UnixMilli() {
			if _, id, ok := strings.Cut(k.Name, "}:"); ok {
				id, _, _ = strings.Cut(id, ":rwlock_timeout")
				j.expired[id] = true
			}
		}
	}
}

// atRest judges a world in which nothing can happen any more.
func (j *judge) atRest() {
	w := j.w
	for _, c := range w.callers {
		if c.phase != gone {
			j.says("caller %d waits forever", c.id)
		}
	}
	died := slices.ContainsFunc(w.procs, func(p *process) bool { return p.state == dead })
	for _, k := range w.db.Keys(w.now) {
		place := k.Kind == "list" || k.Kind == "zset"
		if strings.HasPrefix(k.Name, "redisson_lock_token") || died && place {
			continue
		}
		j.says("%s is left behind", k.Name)
	}
	for _, p := range w.procs {
		if p.state != dead && p.pending != 0 {
			j.says("Close of process %d would wait forever", p.id)
		}
	}
}
