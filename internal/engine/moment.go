package engine

import "time"

// moment is what an event of an entry knows of the world outside: the time, chance, and whether messages arrive. The
// function that takes entry.mu for an event makes its moment and passes it to all that it calls. So an event has one
// time. It is read when a step first asks for it, which the steps of a local hand-off do not. That is after entry.mu
// was taken: no wait for the mutex makes it too early. Only the moment of an Unlock is that of the call, because the
// lease is given up if it was valid then. A hold whose deadline is as near as such a wait is not passed on (hold.sound).
// The files of the state machine learn these things in no other way: TestMachine_KnowsTheWorldByItsMoment.
type moment struct {
	engine *Engine
	at     time.Time // zero: not read yet
	effects
}

// moment begins an event.
func (e *entry) moment() moment { return moment{engine: e.engine} }

// now is the time of the event.
func (m *moment) now() time.Time {
	if m.at.IsZero() {
		m.at = time.Now()
	}
	return m.at
}

// age is now, after Engine.Epoch.
func (m *moment) age() time.Duration { return m.now().Sub(m.engine.Epoch) }

// roughly is age for people: up to a millisecond old.
func (m *moment) roughly() time.Duration {
	if m.at.IsZero() {
		return m.engine.coarseNow()
	}
	return m.age()
}

// chance draws a number from 0 to below n.
func (m *moment) chance(n int64) int64 { return m.engine.Chance(n) }

// hears reports whether the process gets messages: its inbox is subscribed.
func (m *moment) hears() bool { return m.engine.inbox.live() }

// denied reports whether Redis denies the process its inbox.
func (m *moment) denied() bool { return m.engine.Subscriber.Denied(m.engine.inbox.channel) }

// session numbers the subscriptions of the inbox: messages between two of them have been missed.
func (m *moment) session() uint64 { return m.engine.inbox.sessions.Load() }
