package explore

import (
	"slices"

	"github.com/holdfast-go/holdfast/internal/lock"
)

// strikes are the faults that may happen now.
func (w *World) strikes() (all []step) {
	add := func(f Fault, n int) {
		if slices.Contains(w.plan.Faults, f) {
			all = append(all, step{what: strikes, n: n, fault: f, option: true})
		}
	}
	for n, f := range w.flights {
		if f.ghost || f.p.state == dead {
			continue
		}
		if !f.ran || f.outcome == lock.Answered {
			add(Fails, n)
		}
		if !f.ran {
			add(Loses, n)
		} else if f.acks && f.acked > 0 {
			add(Unreplicated, n)
		}
		if !f.stranded && f.p.state == running && f.renews == nil && f.extends == nil {
			add(Strands, n)
		}
	}
	for _, p := range w.procs {
		if p.state == dead {
			continue
		}
		if len(p.mail) > 0 {
			add(Mute, p.id)
		}
		if p.listening {
			add(Cut, p.id)
			if !p.uncounted {
				add(Uncounted, p.id)
			}
		}
		if p.state == running && !p.isIdle() {
			add(Stops, p.id)
			add(Dies, p.id)
		}
	}
	for n, c := range w.callers {
		if !c.Java && c.phase == waiting && c.p().state == running {
			add(Leaves, n)
		}
	}
	for n := range w.plan.Locks {
		if w.db.Has(w.plan.Locks[n].keys.Lock.(string), w.now) {
			add(Deletes, n)
		}
	}
	return all
}

// strike has a fault happen.
func (w *World) strike(s step) {
	switch s.fault {
	case Leaves:
		w.callers[s.n].leaves()
	case Fails:
		f := w.flights[s.n]
		if !f.ran {
			w.haunt(f)
		}
		f.ran, f.reply, f.outcome = true, nil, lock.Unknown
	case Loses:
		f := w.flights[s.n]
		f.ran, f.outcome = true, lock.NotSent
	case Strands:
		w.strand(w.flights[s.n])
	case Unreplicated:
		w.flights[s.n].acked = 0
	case Mute:
		p := w.procs[s.n]
		p.mail = slices.Clone(p.mail[1:])
	case Cut:
		p := w.procs[s.n]
		p.listening, p.uncounted, p.mail = false, false, nil
	case Uncounted:
		w.procs[s.n].uncounted = true
	case Stops:
		w.procs[s.n].state = stopped
	case Dies:
		w.dies(w.procs[s.n])
	case Deletes:
		if n := w.plan.Locks[s.n].Permits; n > 0 { // no lease is lost
			w.judge.locks[s.n].SetPermits(n)
		} else {
			w.judge.deleted = true
			w.judge.locks[s.n].Excused = 1 << 62
		}
		w.db = w.db.Without(w.plan.Locks[s.n].keys.Lock.(string))
	}
}

// dies is the end of a process. What it has sent may still arrive.
func (w *World) dies(p *process) {
	p.state, p.mail, p.listening = dead, nil, false
	for _, f := range slices.Clone(w.flights) {
		if f.p == p && f.ran {
			w.land(f)
		} else if f.p == p {
			f.ghost = true
		}
	}
	for _, l := range w.judge.locks {
		l.Forget(p)
	}
	for _, c := range w.callers {
		if !c.Java && c.p() == p {
			c.phase, c.leases, c.claims, c.waiters = gone, nil, nil, nil
		}
	}
	p.locks = make([]*lock.Lock, len(p.locks))
	p.limits, p.pauses, p.expected = nil, nil, lock.Expected{}
}
