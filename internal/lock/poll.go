package lock

import "time"

// alarm is what the timer of a lock is to fire for. A lock has one timer, so each alarm replaces the one before.
// A request for the first waiter turns the alarm off, and so does the last waiter that leaves.
type alarm uint8

const (
	alarmOff       alarm = iota // the timer does not run
	alarmPoll                   // a message may have been lost, or a TTL has ended; without waiters, the lock may be forgotten. Set by a refusal, step and awaitsReturn
	alarmPause                  // a request may follow one that brought no verdict. Set by pause
	alarmGiveWay                // other processes have had their turn. Set by giveWay, noticed, and a lock that was left open
	alarmStepAside              // likewise, before the request of a caller that has just come back. Set by stepAside
	alarmAsk                    // the holder has not answered TryLocks. Set by a refusal
	alarmLinger                 // a hold that lingers is to be looked at. Set by linger and look
)

// yields reports whether the lock gives way to other processes until the timer fires. Messages are about them until
// then.
func (a alarm) yields() bool { return a == alarmGiveWay || a == alarmStepAside }

// polls reports whether a request follows the alarm because no message has come.
func (a alarm) polls() bool { return a == alarmPoll || a == alarmAsk }

// WakeUp is the event that the timer has fired.
func (lk *Lock) WakeUp(m *Moment) {
	if lk.alarm == alarmOff { // turned off as it was firing: the event that did so goes on
		return
	}
	if lk.waiters.len > 0 && !lk.alarm.yields() {
		m.effects().Counts.Polls++
	}
	m.rang = lk.alarm
	lk.disarm()
	if m.rang == alarmLinger {
		lk.look(m)
	}
	lk.missed.add(missedLock | missedPlaces)
	lk.step(m)
}

// arm has the timer fire in d. If it is firing at this moment, that costs one request.
func (lk *Lock) arm(m *Moment, a alarm, d time.Duration) {
	lk.alarm = a
	lk.Rings = m.Age() + d
}

// disarm turns the alarm off.
func (lk *Lock) disarm() { lk.alarm, lk.Rings = alarmOff, 0 }

// pollWithin has a poll come when d is over, if not before.
func (lk *Lock) pollWithin(m *Moment, d time.Duration) {
	if m.Age()+d < lk.Rings {
		lk.arm(m, alarmPoll, d)
	}
}

// deafPoll is how often a waiter sends a request while its process hears no inbox: the lock may have been granted
// to it, and is idle meanwhile.
const deafPoll = 50 * time.Millisecond

// deniedPoll is how long at most a waiter waits until it asks again while Redis denies its process the inbox. That
// may last, so the waiter asks as rarely as the poll interval says, but not so rarely that a grant to it, which
// only an answer reports, ends before.
const deniedPoll = MaxClaim * 3 / 4

// pastTTL is how long after the end of a TTL a waiter asks.
const pastTTL = 2 * time.Millisecond

// PollAfter is how long to wait for a message while another owner holds the lock for ttl. It ends with the TTL,
// whose end is not announced. It is at most the poll interval, from which up to a fifth is taken so that processes
// do not poll in step. It is short enough to keep the place in the queue, and at most two minutes: each request
// also keeps the queue itself (keep_keys in scripts/lib/place.lua).
func (lk *Lock) PollAfter(m *Moment, ttl time.Duration) time.Duration {
	poll := min(m.set.Poll, m.set.Patience/3, 2*time.Minute)
	switch {
	case m.knows().Inbox == Heard:
	case m.knows().Inbox == InboxDenied:
		poll = min(poll, deniedPoll)
	default:
		poll = min(poll, deafPoll)
	}
	poll -= time.Duration(m.set.Chance(int64(poll/5 + 1)))
	if ttl < 0 || ttl > poll { // below 0: a foreign lock without TTL
		return poll
	}
	return min(poll, ttl+pastTTL)
}
