package engine

import (
	"time"
)

// alarm is what the timer of an entry is to fire for. An entry has one timer, so each alarm replaces the one before.
// A request for the first waiter turns the alarm off.
type alarm uint8

const (
	alarmOff       alarm = iota // the timer does not run
	alarmPoll                   // a message may have been lost, or a TTL has ended; without waiters, the entry may be forgotten
	alarmPause                  // the pause after trouble is over
	alarmGiveWay                // other processes have had their turn
	alarmStepAside              // likewise, before the request of a caller that has just come back (aside.go)
)

// yields reports whether the entry gives way to other processes until the timer fires. Messages are about them until
// then.
func (a alarm) yields() bool { return a == alarmGiveWay || a == alarmStepAside }

// wakeUp is called by the timer.
func (e *entry) wakeUp() {
	m := e.moment()
	e.mu.Lock()
	defer e.unlock(&m)
	if e.alarm == alarmOff { // turned off as it was firing: the event that did so goes on
		return
	}
	if e.waiters.Len() > 0 && !e.alarm.yields() {
		e.engine.Stats.Polls.Add(1)
	}
	e.disarmLocked()
	e.missed.add(missedLock | missedPlaces)
	e.stepLocked(&m)
}

// armLocked has the timer fire in d. If it is firing at this moment, that costs one request.
func (e *entry) armLocked(m *moment, a alarm, d time.Duration) {
	e.alarm = a
	e.rings = m.age() + d
}

// disarmLocked turns the alarm off.
func (e *entry) disarmLocked() { e.alarm, e.rings = alarmOff, 0 }

// pollWithinLocked has a poll come when d is over, if not before.
func (e *entry) pollWithinLocked(m *moment, d time.Duration) {
	if m.age()+d < e.rings {
		e.armLocked(m, alarmPoll, d)
	}
}

// deafPoll is how often a waiter sends a request while its process hears no inbox: the lock may have been granted
// to it, and is idle meanwhile.
const deafPoll = 50 * time.Millisecond

// deniedPoll is how long at most a waiter waits until it asks again while Redis denies its process the inbox. That
// may last, so the waiter asks as rarely as the poll interval says, but not so rarely that a grant to it, which
// only an answer reports, ends before.
const deniedPoll = claimTTL * 3 / 4

// pastTTL is how long after the end of a TTL a waiter asks.
const pastTTL = 2 * time.Millisecond

// pollAfter is how long to wait for a message while another owner holds the lock for ttl. It ends with the TTL,
// whose end is not announced. It is at most the poll interval, from which up to a fifth is taken so that processes
// do not poll in step. It is short enough to keep the place in the queue, and at most two minutes: each request
// also keeps the queue itself (keep_keys in prelude/stand.lua).
func (e *entry) pollAfter(m *moment, ttl time.Duration) time.Duration {
	poll := min(e.engine.poll, e.engine.patience/3, 2*time.Minute)
	switch {
	case m.hears():
	case m.denied():
		poll = min(poll, deniedPoll)
	default:
		poll = min(poll, deafPoll)
	}
	poll -= time.Duration(m.chance(int64(poll/5 + 1)))
	if ttl < 0 || ttl > poll { // below 0: a foreign lock without TTL
		return poll
	}
	return min(poll, ttl+pastTTL)
}
