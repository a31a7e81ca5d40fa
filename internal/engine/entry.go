package engine

import (
	"context"
	"math/rand/v2"
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
//	noticed            a grant by the server                       inbox.go
//	heard, subscribed  Redisson's messages, a (re-)subscription    below
//	unsure             the inbox begins to be heard, or is denied  below
//	wakeUp             the timer: poll, TTL of the holder, pause   below
//	close              Manager.Close                               below
//	missed, expire     a renewal or the deadline                   loss.go, renew.go
//	reachLimit         the end by WithMaxHold                      loss.go
//	Unlock             the holder is done                          unlock.go
//
// The attempt in Redis belongs to the entry and not to a caller: for a mutex and a
// read-write lock the first waiter's bid stands for all, and when that waiter gives
// up, the next one takes it over. Waiters of a fair lock have a bid and a place in
// Redis's queue each.
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

	silent  time.Duration // the last moment at which Redis answered, or got the first request, after Engine.Epoch; 0: no request since a hold
	trouble *trouble      // nil if the last request brought a verdict
	timer   *time.Timer   // calls wakeUp
	wakes   time.Duration // when it does, after Engine.epoch, if it is armed
	places  *places       // what only a fair lock has; nil: it is none. Not changed

	absence   *absence // mutex: it was handed to another process; nil: not lately
	orphan    *waiter  // not fair: has left behind a bid whose request is not answered; nil: none
	releasing int32    // releases under way that a new request would collide with
	orphans   int32    // bids left behind
	onces     int32    // TryLocks among the waiters

	ask       bool // something happened after which a request is worth it
	armed     bool // the timer will fire
	yielding  bool // giving way to other processes until the timer fires
	pausing   bool // because of trouble, until the timer fires
	refused   bool // the last verdict: another owner stands in the way
	listening bool // registered for Redisson's channel
	strayed   bool // fair: a waiter in the middle has no place in Redis's queue
	unheard   bool // fair: a waiter may have been granted the lock and not know it
	closed    bool // the manager is closed
	dead      bool // forgotten by the manager: a caller that found it must look again

	kind Kind // a family; not changed, and here because it fills a gap

	waits  uint32 // callers that had to wait in that minute, and are not in Engine.contended yet
	minute uint32 // after Engine.epoch
}

// mapped is the lock's name as Redis sees it.
func (e *entry) mapped() string { return e.keys.Lock.(string) }

func (e *entry) channel() string { return e.keys.Channel.(string) }

// request is what a waiting caller wants. Of its fields, unhook is set once it waits, and the
// bid changes: both are guarded by entry.mu.
type request struct {
	h      *Lock
	once   bool                // TryLock: refused by the first verdict
	behind int32               // fair, once: how many of the releases that were under way when it came have not ended
	after  uint64              // requests numbered above it were sent after the caller had come
	came   time.Duration       // when that was, after Engine.epoch
	label  *string             // of WithLabel; nil: none
	trace  context.Context     // parent of the span of a request sent for this caller; nil: none
	async  func(*Lease, error) // LockAsync: takes the outcome, and does not block; else nil
	unhook func() bool         // LockAsync: stops listening to the context; else nil
	bid
}

type waiter = parking.Waiter[request, outcome]

// outcome is what a caller gets: a lease, or why there is none.
type outcome struct {
	lease   *Lease
	verdict *Verdict
}

// deliverLocked ends a caller's wait.
func (e *entry) deliverLocked(w *waiter, r outcome) {
	if !e.waiters.Deliver(w, r) {
		return
	}
	e.goneLocked(w)
	if w.Value.async != nil {
		w.Value.async(r.lease, e.engine.explain(w.Value.h.Name, r.verdict))
	}
	if w.Value.unhook != nil {
		go w.Value.unhook() // by a goroutine that holds no lock: the context may be code of the user
	}
}

// refuseLocked ends the wait of TryLocks that were waiting when the request numbered by was sent.
func (e *entry) refuseLocked(by uint64, f Fact, cause error) {
	for w := e.waiters.Front(); w != nil && e.onces > 0; {
		next := w.Next()
		if w.Value.once && w.Value.after < by {
			e.deliverLocked(w, outcome{verdict: because(f, cause)})
		}
		w = next
	}
}

// failLocked ends the wait of all callers.
func (e *entry) failLocked(f Fact, cause error) {
	for w := e.waiters.Front(); w != nil; w = e.waiters.Front() {
		e.deliverLocked(w, outcome{verdict: because(f, cause)})
	}
}

// stepLocked is the one place that decides what happens next.
func (e *entry) stepLocked() {
	front := e.waiters.Front()
	if e.places != nil && (e.places.private != nil || front != nil && front.Value.foreign) {
		e.listenLocked(true) // the first waiter may be another one now
	}
	switch {
	case front == nil:
		e.restLocked()
		return
	case e.hold != nil && e.kind != FairKind, !e.ask:
		// Unlock or the next event goes on from here.
	case e.orphan != nil && e.adoptLocked(front, e.orphan):
		e.orphan = nil
		e.orphans--
	case front.Value.current == nil && e.clearLocked(front):
		e.tryLocked(front) // but not once, while it would meet what is being given up
	}
	if e.kind == FairKind {
		e.joinLocked()
	}
	if front = e.waiters.Front(); front != nil && front.Value.current == nil && e.hold == nil && !e.armed {
		// No waiter is left without a request under way or a timer. A waiter that became the first when the one
		// before it was granted the lock, or left, knows of no TTL, and the next owner may die.
		e.wakeAfterLocked(e.pollAfter(front.Value.h.Terms.claim))
	}
}

// clearLocked reports whether a request for w would meet nothing that is being given up. A TryLock of a fair lock
// does not wait for what was given up since it came: with callers that come and go there is always something.
func (e *entry) clearLocked(w *waiter) bool {
	if e.kind == FairKind && w.Value.once {
		return w.Value.behind <= 0
	}
	return e.releasing == 0 && e.orphan == nil && !(w.Value.once && e.orphans > 0)
}

// gaveUpLocked is called when n that were being given up have ended, in whatever order.
func (e *entry) gaveUpLocked(n int32) {
	for w := e.waiters.Front(); w != nil && e.onces > 0; w = w.Next() {
		before := w.Value.behind
		if w.Value.behind -= n; w.Value.once && before > 0 && w.Value.behind <= 0 {
			e.ask, e.strayed = true, true
		}
	}
}

// restLocked stops sending requests when no caller waits, and forgets the entry when nothing is left of it.
func (e *entry) restLocked() {
	e.ask, e.yielding, e.refused = false, false, false
	e.trouble = nil // later callers have troubles of their own
	e.stopTimer()
	e.listenLocked(false)
	if e.lingerLocked() {
		return
	}
	if e.hold == nil && e.reads.none() && e.releasing+e.orphans == 0 && !e.dead {
		e.dead = true
		e.tellWaitsLocked()
		e.engine.forget(e)
	}
}

// listenLocked makes the entry hear Redisson's channels, or not. They are needed while an owner of Redisson's
// holds the lock or is next. A release by Holdfast sends its message to the inbox of the process that it grants
// the lock to.
func (e *entry) listenLocked(foreign bool) {
	if e.places != nil {
		var first *hold
		if front := e.waiters.Front(); foreign && front != nil {
			first = front.Value.claim
		}
		e.places.listenLocked(e, first)
	}
	switch {
	case foreign && !e.listening:
		e.listening = true
		if e.engine.Subscriber.Add(e.channel(), e) {
			// The channel was still subscribed, but had no listener until now.
			e.ask = e.ask || !e.yielding
		}
	case !foreign && e.listening:
		e.listening = false
		e.engine.Subscriber.Remove(e.channel(), e)
	}
}

// Heard is called by the subscriber for each message on one of Redisson's channels.
func (e *entry) Heard(payload string) {
	if !wire.SaysReleased(payload) {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.engine.Stats.Wakeups.Add(1)
	if !e.yielding { // it may be the message of this process's own release; the timer comes soon
		e.ask = true
		e.stepLocked()
	}
}

// Subscribed is called each time Redis confirms a subscription. Messages from before then have been missed, so a
// request follows every confirmation. While the process gives way to others, the timer sends it, soon.
func (e *entry) Subscribed() {
	e.mu.Lock()
	e.ask = e.ask || !e.yielding
	e.stepLocked()
	e.mu.Unlock()
}

// Relied is called by the subscriber: no request depends on Redisson's channels.
func (e *entry) Relied() bool { return false }

// unsure is called when the inbox is subscribed, because earlier grants were missed, and when it turns out that it
// cannot be.
func (e *entry) unsure() {
	e.mu.Lock()
	e.ask, e.unheard = e.ask || !e.yielding, true
	e.stepLocked()
	e.mu.Unlock()
}

// wakeUp is called by the timer.
func (e *entry) wakeUp() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.armed { // stopped as it was firing: the event that stopped it goes on
		return
	}
	if e.waiters.Len() > 0 && !e.yielding {
		e.engine.Stats.Polls.Add(1)
	}
	e.yielding, e.pausing, e.armed = false, false, false
	e.ask, e.strayed = true, true
	e.stepLocked()
}

// wakeAfterLocked arms the timer. If it is firing at this moment, that costs one request.
func (e *entry) wakeAfterLocked(d time.Duration) {
	e.yielding = false
	e.armLocked(d)
}

// yieldForLocked gives way to others for a moment, in which messages are about them.
func (e *entry) yieldForLocked(d time.Duration) {
	e.yielding = true
	e.armLocked(d)
}

// wakeWithinLocked has the timer fire when d is over, if not before.
func (e *entry) wakeWithinLocked(d time.Duration) {
	if time.Since(e.engine.Epoch)+d < e.wakes {
		e.armLocked(d)
	}
}

func (e *entry) armLocked(d time.Duration) {
	e.armed, e.pausing = true, false
	e.wakes = time.Since(e.engine.Epoch) + d
	if e.timer == nil {
		e.timer = time.AfterFunc(d, e.wakeUp)
	} else {
		e.timer.Reset(d)
	}
}

func (e *entry) stopTimer() {
	e.armed, e.pausing = false, false
	if e.timer != nil {
		e.timer.Stop()
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
func (e *entry) pollAfter(ttl time.Duration) time.Duration {
	poll := min(e.engine.poll, e.engine.patience/3, 2*time.Minute)
	switch {
	case e.engine.inbox.live():
	case e.engine.Subscriber.Denied(e.engine.inbox.channel):
		poll = min(poll, deniedPoll)
	default:
		poll = min(poll, deafPoll)
	}
	poll -= rand.N(poll/5 + 1)
	if ttl < 0 || ttl > poll { // below 0: a foreign lock without TTL
		return poll
	}
	return min(poll, ttl+pastTTL)
}

// close fails the waiters and releases the holds, for Manager.Close.
func (e *entry) close() {
	e.mu.Lock()
	e.closed = true
	e.failLocked(Closed, nil)
	var announce []func()
	for _, h := range e.holdsLocked() {
		announce = append(announce, e.closeHoldLocked(h, time.Now()))
	}
	e.stepLocked()
	e.mu.Unlock()
	for _, tell := range announce {
		tell()
	}
}

// holdsLocked returns what the process holds.
func (e *entry) holdsLocked() []*hold {
	all := slices.Clone(e.reads.all())
	if e.hold != nil {
		all = append(all, e.hold)
	}
	return all
}
