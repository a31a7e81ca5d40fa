package sim

import "time"

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
