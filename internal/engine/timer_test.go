package engine

import (
	"testing"
	"testing/synctest"
	"time"
)

// The timers of an entry are what its state wants when an event ends, whatever the event has changed on the way.
func TestTimers_FollowTheState(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		eng := &Engine{Epoch: time.Now()}
		e := &entry{engine: eng, life: lifeOver}
		h := &hold{entry: e, phase: held}
		r := &repeated{entry: e, copies: copies{flying: maxCopies}} // nothing is sent when its pause is over
		event := func(step func(m *moment)) {
			m := e.moment()
			e.mu.Lock()
			step(&m)
			e.unlock(&m)
		}
		running := func() (n int) {
			for _, timer := range []*time.Timer{e.timer, r.timer} {
				if timer != nil && timer.Stop() {
					n++
				}
			}
			return n
		}
		event(func(m *moment) {
			e.armLocked(m, alarmPoll, time.Hour)
			e.disarmLocked()
			r.resumes = m.age() + time.Hour
			m.sync(r)
			r.resumeLocked(m)
		})
		if n := running(); n != 0 {
			t.Errorf("%d timers run for what is over", n)
		}
		event(func(m *moment) {
			e.armLocked(m, alarmPoll, time.Hour)
			r.resumes = m.age() + time.Hour
			m.sync(r)
			h.limit = &limit{at: m.now().Add(time.Hour), hold: h}
			m.sync(h.limit)
		})
		l, pause := h.limit, r.timer
		if e.set != e.rings || len(eng.paused) != 1 || r.timer == nil || l.timer == nil {
			t.Errorf("the alarm fires at %v, want %v; %d pauses; timers %v, %v", e.set, e.rings, len(eng.paused), r.timer, l.timer)
		}
		event(func(m *moment) {
			e.disarmLocked()
			r.resumeLocked(m)
			h.endLimit(m)
		})
		if running() != 0 || l.timer.Stop() || pause.Stop() || len(eng.paused) != 0 {
			t.Error("a timer runs for what is over")
		}
		// Close finds no pause that begins while it begins: such a one is short.
		eng.closed = true
		event(func(m *moment) {
			r.resumes = m.age() + time.Hour
			m.sync(r)
		})
		time.Sleep(awaitedPause)
		synctest.Wait()
		if r.timer != nil {
			t.Error("a long pause while Close waits")
		}
	})
}
