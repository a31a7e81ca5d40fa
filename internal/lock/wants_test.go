package lock

import (
	"testing"
	"time"
)

// roomy is a world of which only room for effects is asked.
type roomy struct{ World }

func (roomy) Room() *Effects { return new(Effects) }

// What is to run for a lock is what its state wants when an event ends, whatever the event has changed on the way.
func TestWants_FollowTheState(t *testing.T) {
	l := new(Lock)
	h := &Hold{lock: l, phase: held}
	r := &Repeated{lock: l, copies: copies{flying: maxCopies}} // nothing is sent when its pause is over
	event := func(step func(m *Moment)) *Effects {
		m := new(Moment)
		m.Begin(roomy{}, new(Settings))
		m.Date(time.Now())
		step(m)
		return m.Effects()
	}
	event(func(m *Moment) {
		l.arm(m, alarmPoll, time.Hour)
		l.disarm()
		r.resumes = m.Age() + time.Hour
		m.syncPause(r)
		r.resume(m)
	})
	if l.Rings != 0 || r.Resumes() != 0 {
		t.Errorf("the alarm is to fire at %v, and the pause to end at %v: both are over", l.Rings, r.Resumes())
	}
	x := event(func(m *Moment) {
		l.arm(m, alarmPoll, time.Hour)
		r.resumes = m.Age() + time.Hour
		m.syncPause(r)
		h.Limit = &Limit{At: m.Now().Add(time.Hour), hold: h}
		m.syncLimit(h.Limit)
	})
	limit := h.Limit
	if l.Rings == 0 || r.Resumes() == 0 || !limit.Runs() || len(x.Pauses) != 1 || len(x.Limits) != 1 {
		t.Errorf("the alarm fires at %v, the pause ends at %v, the limit runs: %v; %d pauses and %d limits are told of", l.Rings, r.Resumes(), limit.Runs(), len(x.Pauses), len(x.Limits))
	}
	x = event(func(m *Moment) {
		l.disarm()
		r.resume(m)
		h.endLimit(m)
	})
	if l.Rings != 0 || r.Resumes() != 0 || limit.Runs() || len(x.Pauses) != 1 || len(x.Limits) != 1 {
		t.Error("something runs for what is over, or it is not told of")
	}
}
