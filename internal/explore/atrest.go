package explore

import (
	"slices"
	"strings"
	"time"
)

// What is judged when nothing happens any more, for a process or for all.

// clean: a process that is at rest has nothing in Redis.
func (j *court) clean(p *process) {
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
				j.fails("forsaken hold", "process %d is at rest, and %s has its %s", p.id, k.Name, id)
			}
		}
	}
}

// all judges what is left when no caller is left.
func (j *court) all() {
	w := j.w
	if len(w.flights) > 0 || slices.ContainsFunc(w.procs, func(p *process) bool { return p.state == dead || !p.isIdle() }) ||
		slices.ContainsFunc(w.callers, func(c *caller) bool { return c.phase != gone || c.AtLeast > 0 }) {
		return
	}
	for _, k := range w.db.Keys(w.now) {
		if !strings.HasPrefix(k.Name, "redisson_lock_token") && !strings.HasPrefix(k.Name, "holdfast_tombstones") {
			j.fails("left behind", "%s", k.Name)
		}
	}
}

// patience is called when time has to pass. Nothing in these worlds lasts for longer.
func (j *court) patience() {
	const most = 5 * time.Minute
	for _, c := range j.w.callers {
		if c.phase == waiting && j.w.now.Sub(epoch) > most {
			j.fails("starved", "caller %d waits forever", c.id)
		}
	}
}

// passing is called before time passes.
func (j *court) passing(to time.Time) {
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
func (j *court) atRest() {
	w := j.w
	for _, c := range w.callers {
		if c.phase != gone {
			j.fails("starved", "caller %d waits forever", c.id)
		}
	}
	died := slices.ContainsFunc(w.procs, func(p *process) bool { return p.state == dead })
	for _, k := range w.db.Keys(w.now) {
		place := k.Kind == "list" || k.Kind == "zset"
		if strings.HasPrefix(k.Name, "redisson_lock_token") || died && place {
			continue
		}
		j.fails("left behind", "%s", k.Name)
	}
	for _, p := range w.procs {
		if p.state != dead && p.pending != 0 {
			j.fails("late return", "Close of process %d would wait forever", p.id)
		}
	}
}
