package sim

import (
	"slices"
	"time"
)

// What is added to a plan that has been drawn. Each addition has chance of its own, so that it changes nothing else of the plan.

// stays draws how long locks stay taken after an early Unlock, in one world of six, and more often where several are taken as one. It has chance of its own.
func (d *draft) stays() {
	chance := newRand(d.Seed, 2)
	several := slices.ContainsFunc(d.Locks, func(l Lock) bool { return l.Kind == Multi || l.Kind == Redlock })
	if chance.IntN(6) > 0 && !(several && chance.IntN(3) == 0) {
		return
	}
	for i := range d.Locks {
		if l := &d.Locks[i]; l.Kind != Multi && l.Kind != Semaphore && chance.IntN(2) == 0 {
			l.AtLeast = mostAtLeast >> (2 * chance.IntN(4))
		}
	}
}

// addLeavers gives each process two more callers who leave and come back. It has chance of its own.
func (p *Plan) addLeavers() {
	d := &draft{Rand: newRand(p.Seed, 3), Plan: *p}
	for i := range p.Processes {
		q := &p.Processes[i]
		q.Workers = append(q.Workers, Worker{d.hasty(10 * time.Millisecond)}, Worker{d.hasty(10 * time.Millisecond)})
	}
}

// widen has workers make calls of the API that decide nothing for the others: what operators ask for, and calls under a lease.
func (d *draft) widen() {
	chance := newRand(d.Seed, 5)
	d.eachStep(func(s *Step) {
		switch n := chance.IntN(100); {
		case n < 2:
			s.Way = ByLocks
		case n == 2:
			s.Way = ByInspect
		case n == 3 && d.Shape == FailOver:
			s.Way = ByForceOf
		case n < 10 && s.End == "" && len(s.Inside) == 0:
			s.Inside = []Inner{Afresh}
		case n < 20 && s.Read:
			s.Inside = append(s.Inside, Upgrade)
		}
	})
}

// addTickets has sections end with a ticket, and others attach one, in one world of four, or always. It has chance of its own.
func (p *Plan) addTickets(always bool) (added bool) {
	chance := newRand(p.Seed, 20)
	if p.Shape == Majority || p.Shape == Crowd || chance.IntN(4) > 0 && !always {
		return false
	}
	p.eachStep(func(s *Step) {
		switch chance.IntN(6) {
		case 0:
			s.End, s.Ticket = HandOver, mostTicket/time.Duration(1+chance.IntN(40))
		case 1, 2:
			if s.Way, s.Limit = ByAttach, 0; chance.IntN(3) == 0 {
				s.Limit, s.Cancel = 1+time.Duration(chance.Int64N(int64(8*p.Latency))), chance.IntN(2) == 0
			}
		}
	})
	return true
}

// mostTicket is the longest time of a ticket of a plan.
const mostTicket = 2 * time.Second

// addWanted has holders step aside when others want the lock, in one world of four, or always. It has chance of its own.
func (p *Plan) addWanted(always bool) {
	chance := newRand(p.Seed, 21)
	if p.Shape == Majority || p.Shape == Crowd || chance.IntN(4) > 0 && !always {
		return
	}
	for i := range p.Locks {
		p.Locks[i].Wanted = p.Locks[i].Kind != Semaphore && chance.IntN(2) == 0
	}
	p.eachStep(func(s *Step) {
		if s.Heeds = chance.IntN(2) == 0; s.Heeds && chance.IntN(3) == 0 { // else the next question comes too late
			s.Hold = time.Duration(chance.Int64N(int64(3 * time.Second)))
		}
	})
}

// addValues gives locks values, in one world of four, or always, and one of them two, between which its callers choose. It has chance of its own.
func (p *Plan) addValues(always bool) {
	chance := newRand(p.Seed, 22)
	if p.Shape == Majority || p.Shape == Semaphores || chance.IntN(4) > 0 && !always {
		return
	}
	p.Locks = append(p.Locks, p.Locks[0])
	for i := range p.Locks {
		p.Locks[i].Value = []string{"", "batch 7/ü", "write", "7"}[(i+chance.IntN(3))%4]
	}
	p.eachStep(func(s *Step) {
		if s.Lock == 0 && chance.IntN(2) == 0 {
			s.Lock = len(p.Locks) - 1
		}
		if chance.IntN(4) == 0 {
			s.Way = ByInspect
		}
	})
}

func (p *Plan) eachStep(do func(*Step)) {
	for n := range p.Processes {
		for k := range p.Processes[n].Workers {
			for i := range p.Processes[n].Workers[k].Steps {
				do(&p.Processes[n].Workers[k].Steps[i])
			}
		}
	}
}

// mostLinger is the longest time for which a process of a plan keeps a lock after Unlock (WithLinger).
const mostLinger = 5 * time.Second

// addLingerers has processes keep locks. It has chance of its own.
func (p *Plan) addLingerers() {
	if p.Shape == Majority || p.Shape == WithReplicas {
		return
	}
	chance := newRand(p.Seed, 16)
	for i := range p.Locks {
		l := &p.Locks[i]
		if (l.Kind == Mutex || l.Kind == RW) && !l.Fixed && l.AtLeast == 0 && chance.IntN(4) > 0 {
			l.Linger = []time.Duration{50 * time.Millisecond, 500 * time.Millisecond, mostLinger, mostLinger}[chance.IntN(4)]
		}
	}
}

// unansweredLocked is for how much longer the TryLock may wait: for the answer of a holder that may linger, if something is wrong with a process,
// or one has begun to listen since, which may be the holder.
func (a *attempt) unansweredLocked() time.Duration {
	w := a.k.w
	for _, u := range a.h.units {
		lingers := slices.ContainsFunc(w.plan.Locks, func(l Lock) bool { return l.Name == u.Name && l.Linger > 0 })
		if lingers && slices.ContainsFunc(w.all, func(p *process) bool { return !p.calmLocked(u.s) || p.hearsLocked(u.s) > a.began.at }) {
			return 100*time.Millisecond + w.trips(16)
		}
	}
	return 0
}
