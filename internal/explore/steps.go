package explore

import (
	"slices"

	"github.com/holdfast-go/holdfast/internal/lock"
	"github.com/holdfast-go/holdfast/internal/wire"
)

// step is one thing that can happen.
type step struct {
	what   verb
	n      int   // which process, request, or caller
	fault  Fault // of strikes
	option bool  // it need not happen
}

type verb uint8

const (
	fires      verb = iota // what is due in a process
	answers                // a request
	runs                   // likewise
	hears                  // a message
	subscribes             // the inbox
	listens                // to Redisson's channel of a lock
	comes
	hasHeard // one of Redisson's, of a release
	does
	unlocks
	closes
	sets
	recovers // a process goes on, or its inbox is at the right server again
	passes   // time
	strikes  // a fault
)

// steps returns all that can happen. The first is what happens if all goes well: without delay, with each request answered in
// the order of sending. No step: the world is at rest.
func (w *World) steps() (all []step) {
	add := func(what verb, n int) { all = append(all, step{what: what, n: n}) }
	prompt := true
	for _, p := range w.procs {
		if p.state == running && p.due(false) != nil {
			add(fires, p.id)
			prompt = false
		}
	}
	for n, f := range w.flights {
		if f.ran && f.p.state == running {
			add(answers, n)
		}
	}
	for n, f := range w.flights {
		if !f.ran {
			add(runs, n)
		}
	}
	for _, p := range w.procs {
		if p.state != running {
			continue
		}
		if len(p.mail) > 0 {
			add(hears, p.id)
		}
		if !p.expected.IsEmpty() && !p.listening {
			add(subscribes, p.id)
		}
		for n, l := range p.locks {
			if l != nil && l.Listening && !p.hears[n] {
				add(listens, p.id*len(p.locks)+n)
			}
		}
	}
	for n, c := range w.callers {
		if c.Java && c.phase == waiting && (c.heard || w.isFree(c)) {
			add(hasHeard, n)
		}
	}
	for n, c := range w.callers {
		switch {
		case !c.Java && c.p().state != running:
		case c.phase == outside && !w.hasTwin(n):
			add(comes, n)
		case c.phase == inside && c.then < len(c.Then):
			add(does, n)
		case c.phase == inside:
			add(unlocks, n)
		}
	}
	for _, p := range w.procs {
		if p.state == stopped || p.state == running && p.uncounted {
			add(recovers, p.id)
		}
	}
	if w.isCut() && !w.cut.Add(cutFor).After(w.now) {
		add(sets, 0)
	}
	if at, some := w.next(); some && !w.outlives(at) && (len(all) == 0 || prompt && w.late < w.plan.Late) {
		all = append(all, step{what: passes, option: len(all) > 0})
	}
	for n, c := range w.callers { // an early Unlock
		if c.phase == inside && c.then < len(c.Then) && (c.Java || c.p().state == running) {
			all = append(all, step{what: unlocks, n: n, option: true})
		}
	}
	if w.sets < len(w.plan.Sets) {
		all = append(all, step{what: sets, option: true})
	}
	for _, n := range w.plan.Closes {
		if p := w.procs[n]; !p.closed && p.state == running {
			all = append(all, step{what: closes, n: n, option: true})
		}
	}
	if w.faults < w.plan.Most {
		all = append(all, w.strikes()...)
	}
	return all
}

// hasTwin reports whether another caller, that is to come first, is the same as the n-th in all.
func (w *World) hasTwin(n int) bool {
	c := w.callers[n]
	if w.plan.Ordered && n > 0 && w.callers[n-1].phase == outside {
		return true
	}
	for _, o := range w.callers[:n] {
		if o.phase == outside && o.Process == c.Process && !c.Java && o.terms.Options == c.terms.Options && o.Kind == c.Kind && o.Once == c.Once &&
			slices.Equal(o.Locks, c.Locks) && slices.Equal(o.Then, c.Then) {
			return true
		}
	}
	return false
}

// isFree reports whether the lock that c waits for is, and nothing is on the way: one of Redisson's asks when a TTL is over.
func (w *World) isFree(c *caller) bool {
	if c.of().Permits > 0 {
		return len(w.flights) == 0 && w.isAvailable(c.of())
	}
	return len(w.flights) == 0 && !w.db.Has(c.of().keys.Lock.(string), w.now)
}

// take has one thing happen.
func (w *World) take(s step) {
	if w.log != nil {
		w.note("%s", w.tell(s))
	}
	switch s.what {
	case fires:
		w.procs[s.n].due(true)()
	case answers:
		w.answer(w.flights[s.n])
	case runs:
		w.execute(w.flights[s.n])
	case hears:
		w.procs[s.n].hear()
	case subscribes:
		p := w.procs[s.n]
		p.listening = true
		p.session++
		p.unsure()
	case listens:
		p := w.procs[s.n/len(w.plan.Locks)]
		n := s.n % len(w.plan.Locks)
		p.hears[n] = true
		p.event(p.locks[n], p.locks[n].Subscribed)
	case comes:
		w.callers[s.n].comes()
	case hasHeard:
		w.callers[s.n].asks()
	case does:
		w.callers[s.n].does()
	case unlocks:
		w.callers[s.n].unlocks()
	case closes:
		w.procs[s.n].close()
	case sets:
		w.setPermits()
	case recovers:
		p := w.procs[s.n]
		if p.state == stopped {
			p.state = running
			break
		}
		p.uncounted = false
		p.session++
		p.unsure()
	case passes:
		next, _ := w.next()
		if s.option {
			w.late++
		} else {
			w.judge.idle(next)
			w.judge.patience()
		}
		w.judge.passing(next)
		w.now = next
		for _, c := range w.callers {
			if _, has := w.db.Field(c.of().Name, javaID, next); c.Java && c.Permits == 0 && c.phase == inside && !has {
				w.judge.gives(c, 0)
				c.phase = gone
			}
		}
	case strikes:
		w.faults++
		w.strike(s)
	}
	for len(w.deferred) > 0 {
		f := w.deferred[0]
		w.deferred = w.deferred[1:]
		f()
	}
	w.judge.look()
}

// after has f be called when the events of a step are over.
func (w *World) after(f func()) { w.deferred = append(w.deferred, f) }

// hear is the next message.
func (p *process) hear() {
	m := p.mail[0]
	p.mail = slices.Clone(p.mail[1:])
	if m.lock < 0 {
		n, ok := wire.ParseNotice(m.payload)
		if !ok {
			return
		}
		if h := p.ClaimOf(n); h != nil {
			p.event(h.Lock, func(x *lock.Moment) { h.Lock.Noticed(x, h, n) })
		}
		return
	}
	if l := p.locks[m.lock]; l != nil && wire.SaysReleased(m.payload) {
		p.event(l, l.Freed)
	}
}
