// Package lock is one lock name in one process, as a state machine: events in, effects out. It has no clock, goroutine, mutex
// or chance, and knows nothing of Redis but what requests mean and answers say. A Lock and all that belongs to it are guarded by
// one mutex, which the shell has. For each event the shell takes it, begins a Moment, calls one method, and performs the
// effects of that moment.
package lock

import (
	"slices"
	"time"

	"github.com/holdfast-go/holdfast/internal/wire"
)

// Lock is what this process knows about one lock: the callers that wait for it here, and what the process holds
// or has requested in Redis. Each event records what happened. If a waiter may be served now, it ends in step, the one place
// that decides what to do next:
//
//	Enter, Leave, Expel           a caller comes, or goes                     waiter.go
//	                              and may step aside when it comes            aside.go
//	Replied, Overdue, Stranded    of a request: its methods                   request.go
//	Noticed                       a grant by the server, or another wants it  grant.go
//	Dismiss                       too many locks linger                       linger.go
//	Freed, Subscribed             Redisson's messages, a (re-)subscription    below
//	Unsure                        the inbox begins to be heard, or is denied  below
//	WakeUp                        the timer: poll, TTL of the holder, pause   poll.go
//	Resume                        the timer of a release                      repeated.go
//	Extend, Prolonged             a longer lease is wanted, or granted        hold.go
//	NotFound, Expire              a renewal or the deadline                   loss.go
//	ReachLimit                    the end by WithMaxHold                      loss.go
//	Unlock, UnlockAgain, GiveBack the holder is done                          lease.go
//	Watch, Look                   a caller wants to know of others            demand.go
//	Detach, Attaching, Attached,  it leaves the lock to another process, or
//	NotAttached                   takes it over from one                      detach.go
//	Fail, Close                   the client is closed, or the manager        below
//
// A bid in Redis belongs to the lock and not to a caller. A mutex or a read-write lock has
// one bid. A fair lock has one bid, and one place in Redis's queue, for each waiter. What else makes a kind of lock is
// in kind.go.
type Lock struct {
	Shell   any        // whose lock it is: the shell's. Not changed
	Keys    *wire.Keys // of the handle that made it; not changed
	waiters queue
	hold    *Hold        // what excludes all other owners; nil: nothing that can be used
	shared  *sharedHolds // beside which there can be others; nil: none
	tries   uint64       // numbers the requests

	latest latest        // what Redis said last
	Rings  time.Duration // when the alarm is to fire, after Settings.Epoch; 0: it is off
	places *places       // of a lock with a bid for each waiter; nil: it has one for all. Not changed

	absence   *absence // it was handed to another process; nil: not lately, or its rules do not ask for that
	bid       *Bid     // what was requested in Redis, for all waiters; nil: nothing, or each has its own
	releasing int32    // what is being given up: releases that a new request would collide with, and bids whose waiters have left
	onces     int32    // TryLocks among the waiters

	missed    missed // what is worth a request
	alarm     alarm  // what the timer is to fire for
	Listening bool   // wants to hear Redisson's channels
	Family    Kind   // up to WriteKind; not changed
	life      life   // how far the lock has come
	unused    uint8  // idle times in a row that another process has ended, and beyond unusedMost Unlocks since: see linger.go
	attaching uint16 // calls of Attach under way
}

// Init makes a zero value the lock of a name. Its family is a kind up to WriteKind.
func (lk *Lock) Init(family Kind, keys *wire.Keys, shell any) {
	lk.Family, lk.Keys, lk.Shell = family, keys, shell
	if kinds[family].bidsEach {
		lk.places = new(places)
	}
}

// Private is the claim whose private channel of Redisson's it wants to hear; nil: none.
func (lk *Lock) Private() *Hold {
	if b := lk.firstPlace(); b != nil && lk.Listening {
		return b.claim
	}
	return nil
}

// firstPlace is the bid of the first waiter, if each has its own; nil: there is none.
func (lk *Lock) firstPlace() *Bid {
	if front := lk.waiters.head; front != nil && kinds[lk.Family].bidsEach {
		return front.bid
	}
	return nil
}

// IsOver reports whether nothing is left of it: it is to be forgotten.
func (lk *Lock) IsOver() bool { return lk.life == lifeOver }

// Recall has one that is over be open again.
func (lk *Lock) Recall() { lk.life = lifeOpen }

// missed is what the waiters may have missed, so that a request is worth it. Events add to it, and a request for the
// same takes it away.
type missed uint8

const (
	missedLock   missed = 1 << iota // that the first waiter may get the lock
	missedPlaces                    // fair: that a waiter behind the first has no place in Redis's queue
	missedGrants                    // fair: that a waiter has been granted the lock
	missedLosses                    // fair: that a waiter has lost its place in Redis's queue, see Bid.lost
)

func (m *missed) add(what missed) { *m |= what }

func (m missed) has(what missed) bool { return m&what != 0 }

// take takes what away, and reports whether it was there.
func (m *missed) take(what missed) bool {
	had := m.has(what)
	*m &^= what
	return had
}

// life is how far a lock has come.
type life uint8

const (
	lifeOpen   life = iota
	lifeClosed      // the manager is closed: no caller comes in
	lifeOver        // to be forgotten: a caller that finds it must recall it
)

// step is the one place that decides what happens next.
func (lk *Lock) step(m *Moment) {
	front, each := lk.waiters.head, kinds[lk.Family].bidsEach
	if b := lk.firstPlace(); b != nil && b.foreign {
		lk.Listening = true // the first waiter may be another one now
	}
	switch {
	case front == nil:
		lk.noWaiters(m)
		return
	case lk.hold != nil && !each, !lk.missed.has(missedLock):
		// Unlock or the next event goes on from here.
	case lk.bid != nil && lk.bid.waiter == nil && lk.bid.suits(front):
		lk.releasing-- // it was to be given up
		lk.bid.pass(front)
	case !lk.bidOf(front).asking() && lk.mayAsk(front):
		lk.try(m, front) // but not once, while it would meet what is being given up
	}
	if each {
		lk.join(m)
	}
	if front = lk.waiters.head; front != nil && lk.hold == nil && lk.alarm == alarmOff && !lk.bidOf(front).asking() {
		// No waiter is left without a request under way or a timer. A waiter that became the first when the one
		// before it was granted the lock, or left, knows of no TTL, and the next owner may die.
		lk.arm(m, alarmPoll, lk.PollAfter(m, front.Terms.Claim))
	}
}

// mayAsk reports whether a request for w would meet nothing that is being given up. A TryLock that has a
// bid of its own does not wait for what was given up since it came: with callers that come and go there is always something.
func (lk *Lock) mayAsk(w *Waiter) bool {
	if kinds[lk.Family].bidsEach && w.Once {
		return w.behind <= 0
	}
	return (lk.releasing == 0 || lk.Family.Shared()) && (lk.bid == nil || lk.bid.waiter != nil)
}

// noWaiters stops sending requests when no caller waits, and is over when nothing is left of it.
func (lk *Lock) noWaiters(m *Moment) {
	lk.missed.take(missedLock)
	lk.latest.last = nil // later callers have troubles of their own
	lk.Listening = false
	if lk.Lingering() != nil {
		return // its alarm is on
	}
	lk.disarm()
	if lk.absence != nil && lk.awaitsReturn(m) {
		return
	}
	if lk.hold == nil && lk.shared.none() && lk.releasing == 0 && lk.attaching == 0 && lk.life != lifeOver {
		lk.life = lifeOver
	}
}

// Redisson's channels are needed while an owner of Redisson's holds the lock or is next: lk.Listening. A release by
// Holdfast sends its message to the inbox of the process that it grants the lock to.

// Freed is the event of a message on one of Redisson's channels that the lock was released. One that comes because the channel
// lingers, which the lock does not want to hear any more, is of no use: a request for it would take its turn from Redisson.
func (lk *Lock) Freed(m *Moment) {
	if lk.Listening && !lk.alarm.yields() { // it may be the message of this process's own release; the timer comes soon
		lk.missed.add(missedLock)
		lk.step(m)
	}
}

// Subscribed is the event that Redis has confirmed a subscription. Messages from before then have been missed, so a
// request follows every confirmation.
func (lk *Lock) Subscribed(m *Moment) {
	lk.missedMessages()
	lk.step(m)
}

// missedMessages is called when messages begin to arrive, or arrive again. While the process gives way to others,
// the timer has the request sent, soon.
func (lk *Lock) missedMessages() {
	if !lk.alarm.yields() {
		lk.missed.add(missedLock)
	}
}

// Unsure is the event that the inbox is subscribed, because earlier grants were missed, and that it turns out that it
// cannot be.
func (lk *Lock) Unsure(m *Moment) {
	lk.missed.add(missedGrants)
	lk.missedMessages()
	lk.unheeded(m)
	lk.step(m)
}

// Fail is the event that no request will bring anything, for this cause.
func (lk *Lock) Fail(m *Moment, cause error) {
	lk.fail(m, Unavailable, cause)
	lk.step(m)
}

// Step is the event that callers that came together have found no use for the lock: one that was made for nothing is over.
func (lk *Lock) Step(m *Moment) { lk.step(m) }

// Close fails the waiters and releases the holds.
func (lk *Lock) Close(m *Moment) {
	if lk.life == lifeOpen {
		lk.life = lifeClosed
	}
	lk.fail(m, Closed, nil)
	for _, h := range lk.Holds() {
		lk.closeHold(m, h)
	}
	lk.step(m)
}

// Holds returns what the process holds.
func (lk *Lock) Holds() []*Hold {
	all := slices.Clone(lk.shared.all())
	if lk.hold != nil {
		all = append(all, lk.hold)
	}
	return all
}

// admits reports whether a hold of kind k can be beside those of the process.
func (lk *Lock) admits(k Kind) bool {
	return lk.hold == nil && (lk.shared.none() || k.Shared())
}

// take adds h, which has just been granted, to what the process holds.
func (lk *Lock) take(h *Hold) {
	if kinds[h.Kind].company != exclusive {
		lk.addShared(h)
	} else {
		lk.hold = h
	}
}

// Held is the hold that excludes all other owners; nil: there is none.
func (lk *Lock) Held() *Hold { return lk.hold }

// Lingering is the hold that lingers; nil: none does.
func (lk *Lock) Lingering() *Hold {
	if lk.hold != nil && lk.hold.phase == lingering {
		return lk.hold
	}
	for _, h := range lk.shared.all() {
		if h.phase == lingering {
			return h
		}
	}
	return nil
}

// First is the first waiter; nil: none.
func (lk *Lock) First() *Waiter { return lk.waiters.head }

// Waiting is how many wait.
func (lk *Lock) Waiting() int { return lk.waiters.len }

// Wants reports whether a caller waits for the lock: one of TryLock does not.
func (lk *Lock) Wants() bool { return lk.waiters.len > int(lk.onces) }

// Releasing reports whether something is being given up, and since when, after Settings.Epoch.
func (lk *Lock) Releasing() (since time.Duration, some bool) {
	return lk.latest.since, lk.releasing > 0
}

// WantsRequest reports whether another request for the first waiter is wanted.
func (lk *Lock) WantsRequest() bool { return lk.missed.has(missedLock) }

// sharedHolds are the holds of a lock beside which there can be others: of readers mostly one, shared by all readers of the
// process; of a semaphore one for each owner of permits. A nil one is empty.
type sharedHolds struct {
	holds      []*Hold
	converting *Downgrade // the latest; nil: there was none
}

func (lk *Lock) addShared(h *Hold) {
	if lk.shared == nil {
		lk.shared = new(sharedHolds)
	}
	lk.shared.holds = append(lk.shared.holds, h)
}

// remove takes h out, which ends in this way. The downgrade that was to make it ends too.
func (r *sharedHolds) remove(m *Moment, h *Hold, end *Verdict) {
	if r == nil {
		return
	}
	r.holds = slices.DeleteFunc(r.holds, func(x *Hold) bool { return x == h })
	if r.converts(h) {
		r.converting.abandon(m, end)
	}
	if d := r.converting; d != nil && d.Reader == h {
		r.converting = nil // an entry that is kept for its name (engine/registry.go) keeps no lease
	}
}

func (r *sharedHolds) none() bool { return r == nil || len(r.holds) == 0 }

// converts reports whether a downgrade is to make h, and Redis has not answered it.
func (r *sharedHolds) converts(h *Hold) bool {
	return r != nil && r.converting != nil && r.converting.Reader == h && !r.converting.settled
}

func (r *sharedHolds) all() []*Hold {
	if r == nil {
		return nil
	}
	return r.holds
}
