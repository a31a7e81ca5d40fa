package engine

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/internal/parking"
	"github.com/holdfast-go/holdfast/internal/wire"
)

// entry is what this process knows about one lock: the callers that wait for it here, and what the process holds
// or has requested in Redis. It has no goroutine. Events drive it. Each takes mu and records what happened. If a
// waiter may be served now, the event ends in stepLocked, the one place that decides what to do next:
//
//	enter, leave       a caller comes, or goes                     enter.go
//	                   and may step aside when it comes            aside.go
//	Replied, Overdue   of a try or a release                       try.go, release.go
//	noticed            a grant by the server                       notice.go
//	heard, subscribed  Redisson's messages, a (re-)subscription    below
//	unsure             the inbox begins to be heard, or is denied  below
//	wakeUp             the timer: poll, TTL of the holder, pause   alarm.go
//	close              Manager.Close                               below
//	notFound, expire   a renewal or the deadline                   loss.go, renew.go
//	reachLimit         the end by WithMaxHold                      loss.go
//	Unlock             the holder is done                          unlock.go
//
// A bid in Redis belongs to the entry and not to a caller. The entry of a mutex or a read-write lock has
// one bid. That of a fair lock has one bid, and one place in Redis's queue, for each waiter.
//
// Lock order: entry.mu, then one of Engine.mu, subscriber.mu, inbox.mu, and the locks
// of the scheduler and the executor. None is held over I/O or user code.
type entry struct {
	engine *Engine
	keys   *wire.Keys // of the handle that made it
	name   string     // as given to that: what errors, logs and spans say

	mu      sync.Mutex // guards the following, the holds and their leases
	waiters parking.Queue[request, outcome]
	hold    *hold      // what excludes all other owners; nil: nothing that can be used
	reads   *readHolds // nil: none
	tries   uint64     // numbers the requests

	known  known         // what Redis said last
	rings  time.Duration // when the alarm is to fire, after Engine.Epoch; 0: it is off
	timer  *time.Timer   // calls wakeUp; nil: it never has
	set    time.Duration // when it does, after Engine.Epoch; 0: it does not
	places *places       // what only a fair lock has; nil: it is none. Not changed

	absence   *absence // mutex: it was handed to another process; nil: not lately
	bid       *bid     // what was requested in Redis; nil: nothing, or the lock is fair
	releasing int32    // releases under way that a new request would collide with
	onces     int32    // TryLocks among the waiters

	missed    missed // what is worth a request
	alarm     alarm  // what the timer is to fire for
	listening bool   // wants to hear Redisson's channels
	heard     bool   // is registered for the first of them
	life      life   // how far the entry has come

	kind Kind // a family; not changed, and here because it fills a gap

	waits  uint32 // callers that had to wait in that minute, and are not in Engine.contended yet
	minute uint32 // after Engine.Epoch
}

// missed is what the waiters may have missed, so that a request is worth it. Events add to it, and a request for the
// same takes it away.
type missed uint8

const (
	missedLock   missed = 1 << iota // that the first waiter may get the lock
	missedPlaces                    // fair: that a waiter behind the first has no place in Redis's queue
	missedGrants                    // fair: that a waiter has been granted the lock
)

func (m *missed) add(what missed) { *m |= what }

func (m missed) has(what missed) bool { return m&what != 0 }

// take takes what away, and reports whether it was there.
func (m *missed) take(what missed) bool {
	had := m.has(what)
	*m &^= what
	return had
}

// life is how far an entry has come.
type life uint8

const (
	lifeOpen   life = iota
	lifeClosed      // the manager is closed: no caller comes in
	lifeOver        // forgotten by the manager: a caller that found it must recall it, or look again
)

// mapped is the lock's name as Redis sees it.
func (e *entry) mapped() string { return e.keys.Lock.(string) }

func (e *entry) channel() string { return e.keys.Channel.(string) }

// request is what a waiting caller wants. Three of its fields change while it waits, guarded by entry.mu: behind, unhook
// and bid.
type request struct {
	h      *Lock
	once   bool                // TryLock: refused by the first verdict
	stood  bool                // a caller of this process held the lock or waited for it when it came
	behind int32               // fair, once: how many of the releases that were under way when it came have not ended
	after  uint64              // requests numbered above it were sent after the caller had come
	came   time.Duration       // when that was, after Engine.Epoch
	label  *string             // of WithLabel; nil: none
	trace  context.Context     // parent of the span of a request sent for this caller; nil: none
	async  func(*Lease, error) // LockAsync: takes the outcome; else nil
	unhook func() bool         // LockAsync: stops listening to the context; else nil
	bid    *bid                // fair: what was requested for it; nil: nothing. Of other locks, entry.bid stands for all
}

type waiter = parking.Waiter[request, outcome]

// outcome is what a caller gets: a lease, or why there is none.
type outcome struct {
	lease   *Lease
	verdict *Verdict
}

// deliverLocked ends the wait of a caller, which owns w from then on.
func (e *entry) deliverLocked(m *moment, w *waiter, r outcome) {
	if !e.waiters.Remove(w) {
		return
	}
	e.leftLocked(m, w)
	if w.Value.async != nil {
		m.then(asyncOutcome{r, w.Value.h.Name, w.Value.async, w.Value.unhook})
	}
	w.Tell(r)
}

// refuseLocked ends the wait of TryLocks that were waiting when the request numbered by was sent.
func (e *entry) refuseLocked(m *moment, by uint64, f Fact, cause error) {
	for w := e.waiters.Front(); w != nil && e.onces > 0; {
		next := w.Next()
		if w.Value.once && w.Value.after < by {
			e.deliverLocked(m, w, outcome{verdict: because(f, cause)})
		}
		w = next
	}
}

// failLocked ends the wait of all callers.
func (e *entry) failLocked(m *moment, f Fact, cause error) {
	for w := e.waiters.Front(); w != nil; w = e.waiters.Front() {
		e.deliverLocked(m, w, outcome{verdict: because(f, cause)})
	}
}

// stepLocked is the one place that decides what happens next.
func (e *entry) stepLocked(m *moment) {
	front := e.waiters.Front()
	if b := e.firstPlaceLocked(); b != nil && b.foreign {
		e.listening = true // the first waiter may be another one now
	}
	switch {
	case front == nil:
		e.restLocked(m)
		return
	case e.hold != nil && e.kind != FairKind, !e.missed.has(missedLock):
		// Unlock or the next event goes on from here.
	case e.bid != nil && e.bid.waiter == nil && e.bid.suits(front):
		e.bid.waiter = front
	case !e.bidOf(front).asking() && e.clearLocked(front):
		e.tryLocked(m, front) // but not once, while it would meet what is being given up
	}
	if e.kind == FairKind {
		e.joinLocked(m)
	}
	if front = e.waiters.Front(); front != nil && e.hold == nil && e.alarm == alarmOff && !e.bidOf(front).asking() {
		// No waiter is left without a request under way or a timer. A waiter that became the first when the one
		// before it was granted the lock, or left, knows of no TTL, and the next owner may die.
		e.armLocked(m, alarmPoll, e.pollAfter(m, front.Value.h.Terms.claim))
	}
}

// clearLocked reports whether a request for w would meet nothing that is being given up. A TryLock of a fair lock
// does not wait for what was given up since it came: with callers that come and go there is always something.
func (e *entry) clearLocked(w *waiter) bool {
	if e.kind == FairKind && w.Value.once {
		return w.Value.behind <= 0
	}
	return e.releasing == 0 && (e.bid == nil || e.bid.waiter != nil)
}

// gaveUpLocked is called when n that were being given up have ended, in whatever order.
func (e *entry) gaveUpLocked(n int32) {
	for w := e.waiters.Front(); w != nil && e.onces > 0; w = w.Next() {
		before := w.Value.behind
		if w.Value.behind -= n; w.Value.once && before > 0 && w.Value.behind <= 0 {
			e.missed.add(missedLock | missedPlaces)
		}
	}
}

// restLocked stops sending requests when no caller waits, and forgets the entry when nothing is left of it.
func (e *entry) restLocked(m *moment) {
	e.missed.take(missedLock)
	e.known.last = nil // later callers have troubles of their own
	e.disarmLocked()
	e.listening = false
	if e.lingerLocked(m) {
		return
	}
	if e.hold == nil && e.reads.none() && e.releasing+e.leftBehind() == 0 && e.life != lifeOver {
		e.life = lifeOver
		e.tellWaitsLocked()
		e.engine.forget(e)
	}
}

// Redisson's channels are needed while an owner of Redisson's holds the lock or is next: e.listening. A release by
// Holdfast sends its message to the inbox of the process that it grants the lock to.

// Heard is called by the subscriber for each message on one of Redisson's channels.
func (e *entry) Heard(payload string) {
	if !wire.SaysReleased(payload) {
		return
	}
	m := e.moment()
	e.mu.Lock()
	defer e.unlock(&m)
	e.engine.Stats.Wakeups.Add(1)
	if !e.alarm.yields() { // it may be the message of this process's own release; the timer comes soon
		e.missed.add(missedLock)
		e.stepLocked(&m)
	}
}

// Subscribed is called each time Redis confirms a subscription. Messages from before then have been missed, so a
// request follows every confirmation.
func (e *entry) Subscribed() {
	m := e.moment()
	e.mu.Lock()
	e.missedMessagesLocked()
	e.stepLocked(&m)
	e.unlock(&m)
}

// missedMessagesLocked is called when messages begin to arrive, or arrive again. While the process gives way to others,
// the timer has the request sent, soon.
func (e *entry) missedMessagesLocked() {
	if !e.alarm.yields() {
		e.missed.add(missedLock)
	}
}

// Relied is called by the subscriber: no request depends on Redisson's channels.
func (e *entry) Relied() bool { return false }

// unsure is called when the inbox is subscribed, because earlier grants were missed, and when it turns out that it
// cannot be.
func (e *entry) unsure() {
	m := e.moment()
	e.mu.Lock()
	e.missed.add(missedGrants)
	e.missedMessagesLocked()
	e.stepLocked(&m)
	e.unlock(&m)
}

// close fails the waiters and releases the holds, for Manager.Close.
func (e *entry) close() {
	m := e.moment()
	e.mu.Lock()
	if e.life == lifeOpen {
		e.life = lifeClosed
	}
	e.failLocked(&m, Closed, nil)
	for _, h := range e.holdsLocked() {
		e.closeHoldLocked(&m, h)
	}
	e.stepLocked(&m)
	e.unlock(&m)
}

// holdsLocked returns what the process holds.
func (e *entry) holdsLocked() []*hold {
	all := slices.Clone(e.reads.all())
	if e.hold != nil {
		all = append(all, e.hold)
	}
	return all
}
