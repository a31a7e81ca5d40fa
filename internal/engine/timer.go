package engine

import "time"

// Timers and subscriptions run as the state of their entry says. An event changes the state, and before its mutex is given up
// they are compared with it. So only what an event leaves behind counts, and the timer of an earlier event cannot replace that
// of a later one. A timer that fires at that moment is an event that comes next, and finds what it was for changed.

// timed has a timer of its own, beside that of the entry.
type timed interface {
	syncTimer(now time.Time)
}

// sync adds what may have to be timed otherwise.
func (m *moment) sync(x timed) {
	o := m.order()
	o.timers = append(o.timers, x)
}

// sync compares what runs for e with what its state wants.
func (e *entry) sync(m *moment) {
	if e.set != e.rings {
		e.syncTimer(m)
	}
	if e.heard != e.listening || e.places != nil {
		e.syncChannels(m)
	}
}

// syncTimer is that of the alarm.
func (e *entry) syncTimer(m *moment) {
	e.set = e.rings
	switch d := e.rings - m.age(); {
	case e.rings == 0:
		e.timer.Stop()
	case e.timer == nil:
		e.timer = time.AfterFunc(d, e.wakeUp)
	default:
		e.timer.Reset(d)
	}
}

// syncTimer is that of WithMaxHold, which runs while its caller has the hold.
func (l *limit) syncTimer(now time.Time) {
	switch over := l.hold.limit != l; {
	case over && l.timer != nil:
		l.timer.Stop()
	case !over && l.timer == nil:
		e := l.hold.entry // a downgrade makes it another hold
		l.timer = time.AfterFunc(l.at.Sub(now), func() { e.reachLimit(l) })
	}
}

// syncTimer is that of a pause. Close cuts those short that it finds (Engine.hasten), and one that it does not find is short.
func (r *repeated) syncTimer(now time.Time) {
	switch over := r.resumes == 0; {
	case over && r.timer != nil:
		r.timer.Stop()
		r.timer = nil
		r.entry.engine.resumed(r)
	case !over && r.timer == nil:
		pause := r.entry.engine.at(r.resumes).Sub(now)
		if r.entry.engine.pausing(r) {
			pause = min(pause, awaitedPause)
		}
		r.timer = time.AfterFunc(pause, r.resend)
	}
}

// syncChannels has the entry hear Redisson's channels, or not.
func (e *entry) syncChannels(m *moment) {
	s := m.engine.Subscriber
	if e.heard != e.listening {
		e.heard = e.listening
		if !e.heard {
			s.Remove(e.channel(), e)
		} else if s.Add(e.channel(), e) {
			m.then(heardAlready{e})
		}
	}
	if e.places == nil {
		return
	}
	first, before := e.privateLocked(), e.places.private
	if first == before {
		return
	}
	e.places.private = first
	if before != nil {
		s.Remove(before.fairChannel(), e)
	}
	if first != nil {
		s.Add(first.fairChannel(), e)
	}
}

// heardAlready is for a channel that was still subscribed, but had no listener until now.
type heardAlready struct{ e *entry }

func (x heardAlready) perform(*Engine) { x.e.Subscribed() }
