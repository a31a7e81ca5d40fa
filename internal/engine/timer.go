package engine

import (
	"time"

	"github.com/holdfast-go/holdfast/internal/lock"
)

// Timers and subscriptions run as the state of their lock says. An event changes the state, and before its mutex is given up
// they are compared with it. So only what an event leaves behind counts, and the timer of an earlier event cannot replace that
// of a later one. A timer that fires at that moment is an event that comes next, and finds what it was for changed.

// sync compares what runs for e with what its state wants.
// It reports whether Redisson's channel was still subscribed, but had no listener until now.
func (e *entry) sync(ev *event) (heard bool) {
	r, l := e.runs, &e.lock
	idle := l.Lingering()
	if r == nil && (l.Rings != 0 || l.Listening || idle != nil) {
		r = e.run()
	}
	if r != nil && r.set != l.Rings {
		e.syncTimer(&ev.Moment)
	}
	if r != nil && r.linger.hold != idle {
		if oldest := e.engine.lingering.change(e, idle); oldest != nil {
			ev.afterwards().oldest = oldest
		}
	}
	if r != nil && (r.heard != l.Listening || r.private != l.Private()) {
		heard = e.syncChannels()
	}
	if l.IsOver() { // nothing is left of it
		if r != nil {
			e.tellWaitsLocked()
		}
		e.engine.forget(e)
	}
	return heard
}

// run returns what runs for e.
func (e *entry) run() *running {
	if e.runs == nil {
		e.runs = new(running)
	}
	return e.runs
}

// syncTimer is that of the alarm.
func (e *entry) syncTimer(m *lock.Moment) {
	r := e.runs
	r.set = e.lock.Rings
	switch d := r.set - m.Age(); {
	case r.set == 0:
		r.timer.Stop()
	case r.timer == nil:
		r.timer = time.AfterFunc(d, func() { e.do(e.lock.WakeUp) })
	default:
		r.timer.Reset(d)
	}
}

// syncLimit is for the timer of WithMaxHold, which runs while its caller has the hold.
func syncLimit(l *lock.Limit, now time.Time) {
	timer, _ := l.Timer.(*time.Timer)
	switch over := !l.Runs(); {
	case over && timer != nil:
		timer.Stop()
	case !over && timer == nil:
		e := entryOf(l.Of()) // a downgrade makes it another hold
		l.Timer = time.AfterFunc(l.At.Sub(now), func() { e.do(func(m *lock.Moment) { e.lock.ReachLimit(m, l) }) })
	}
}

// syncPause is for the timer of a pause. Close cuts those short that it finds (Engine.hasten), and one that it does not find is
// short.
func (eng *Engine) syncPause(r *lock.Repeated, now time.Time) {
	if r.Resumes() == 0 {
		eng.resumed(r)
		return
	}
	e := entryOf(r.Of())
	eng.pausing(r, eng.at(r.Resumes()).Sub(now), func() { e.do(func(m *lock.Moment) { e.lock.Resume(m, r) }) })
}

// syncChannels has the entry hear Redisson's channels, or not.
func (e *entry) syncChannels() (heard bool) {
	s, r, l := e.engine.Subscriber, e.runs, &e.lock
	if r.heard != l.Listening {
		r.heard = l.Listening
		if !r.heard {
			s.Remove(e.channel(), e)
		} else {
			heard = s.Add(e.channel(), e)
		}
	}
	first, before := l.Private(), r.private
	if first == before {
		return heard
	}
	r.private = first
	if before != nil {
		s.Remove(e.engine.Process.FairChannel(before), e)
	}
	if first != nil {
		s.Add(e.engine.Process.FairChannel(first), e)
	}
	return heard
}

// watch has the caller of l, of one lock, know when another owner wants the lock.
func (l *Lease) watch() {
	e := l.entry()
	e.do(func(m *lock.Moment) {
		if e.lock.Watch(m, l.in()) && e.run().look == nil {
			e.runs.look = time.AfterFunc(lookEvery, e.look)
		}
	})
}

// lookEvery is how often a process asks whether another one wants a lock, for callers that wait to know that.
const lookEvery = time.Second

func (e *entry) look() {
	e.do(func(m *lock.Moment) {
		if e.lock.Look(m) {
			e.runs.look.Reset(lookEvery)
		} else {
			e.runs.look = nil
		}
	})
}
