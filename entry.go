package holdfast

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v4"

	"github.com/holdfast-go/holdfast/internal/parking"
	"github.com/holdfast-go/holdfast/internal/wire"
)

// entry is what this process knows about one lock: who waits for it here, what the
// process holds or has asked for in Redis. It has no goroutine. It is moved by
// events, each of which takes mu, changes what it changes and ends in stepLocked,
// which decides what to do next:
//
//	enter, leave       a caller comes or goes                      mutex.go
//	Replied, Overdue   of a try or a release                       try.go, release.go
//	heard, subscribed  a message, a (re-)subscription              below
//	wakeUp             the timer: poll, TTL of the holder, pause   below
//	loseLocked         a renewal or the deadline                   grant.go
//	Unlock             the holder is done                          lease.go
//
// The attempt in Redis belongs to the entry and not to a caller. A caller that gives
// up leaves the queue; the grant, when it comes, goes to the next one or straight
// back to Redis.
//
// Lock order: entry.mu, then one of Manager.mu, subscriber.mu, and the locks of the
// scheduler and the executor. None is held over I/O or user code.
type entry struct {
	m    *Manager
	keys *wire.Keys // of the handle that made it

	mu      sync.Mutex // guards the following, the holds and their leases
	waiters parking.Queue[request, Result]
	hold    *hold  // what the process holds; nil: nothing that can be used
	claim   *hold  // what it has asked for and not been granted
	current *try   // the request whose verdict is awaited; nil: none, or it is overdue
	tries   uint64 // numbers the requests

	release *release // the latest that is under way; nil: none
	trouble error    // why the last request brought no verdict; nil if it did
	pauses  *backoff.ExponentialBackOff
	timer   *time.Timer // calls wakeUp

	releasing int32 // releases under way that a new request would collide with
	onces     int32 // waiters that ask once
	failures  int32 // requests without verdict in a row

	ask       bool // something happened that makes it worth asking Redis
	yielding  bool // giving way to other processes until the timer fires
	refused   bool // the last verdict: another owner stands in the way
	listening bool // registered with the subscriber
	closed    bool // the manager is closed
	dead      bool // forgotten by the manager: whoever found it must look again
}

// name is the lock's, after the name mapper.
func (e *entry) name() string { return e.keys.Lock.(string) }

func (e *entry) channel() string { return e.keys.Channel.(string) }

// request is what a waiting caller wants.
type request struct {
	h      *handle
	owner  *owner          // carried by the caller's context; nil: a new one
	once   bool            // TryLock: refused by the first verdict
	after  uint64          // once: only requests numbered above it count, they were sent later
	trace  context.Context // parent of the span of a request sent for this caller; nil: none
	async  chan<- Result   // LockAsync: where the outcome goes; else nil
	unhook func() bool     // LockAsync: stops listening to the context; else nil
	first  try             // the first request sent for it, embedded to save its allocation
}

type waiter = parking.Waiter[request, Result]

// deliverLocked ends a caller's wait.
func (e *entry) deliverLocked(w *waiter, r Result) {
	if !e.waiters.Deliver(w, r) {
		return
	}
	if w.Value.once {
		e.onces--
	}
	if w.Value.async != nil {
		w.Value.async <- r // buffered for it
	}
	if w.Value.unhook != nil {
		w.Value.unhook()
	}
}

// refuseLocked ends the wait of callers that ask once and were waiting when the
// request numbered by was sent.
func (e *entry) refuseLocked(by uint64, sentinel, cause error) {
	for w := e.waiters.Front(); w != nil && e.onces > 0; {
		next := w.Next()
		if w.Value.once && w.Value.after < by {
			e.deliverLocked(w, Result{Err: newLockError(sentinel, w.Value.h.name, cause)})
		}
		w = next
	}
}

// failLocked ends everybody's wait.
func (e *entry) failLocked(sentinel, cause error) {
	for w := e.waiters.Front(); w != nil; w = e.waiters.Front() {
		e.deliverLocked(w, Result{Err: newLockError(sentinel, w.Value.h.name, cause)})
	}
}

// stepLocked is the one place that decides what happens next.
func (e *entry) stepLocked() {
	switch {
	case e.waiters.Len() == 0:
		e.restLocked()
	case e.hold != nil, e.current != nil, e.releasing > 0, !e.ask:
		// Unlock, the reply, the release or the next event goes on from here.
	default:
		e.tryLocked()
	}
}

// restLocked stops asking when nobody waits, and forgets the entry when nothing is
// left of it.
func (e *entry) restLocked() {
	e.ask, e.yielding = false, false
	e.stopTimer()
	if e.listening {
		e.listening = false
		e.m.subscriber.remove(e.channel(), e)
	}
	if c := e.claim; c != nil && e.current == nil {
		e.claim = nil
		e.undoLocked(c)
	}
	if e.hold == nil && e.claim == nil && e.releasing == 0 && !e.dead {
		e.dead = true
		e.m.forget(e)
	}
}

// undoLocked gives up a claim. One that Redis has refused for certain needs nothing;
// of any other a copy may have been executed or still be: it is released, and a
// tombstone refuses copies that come later.
func (e *entry) undoLocked(c *hold) {
	c.phase = over
	if c.stray() {
		e.startReleaseLocked(c, nil)
	}
}

// heard is called by the subscriber for each message on the lock's channel.
func (e *entry) heard(msg wire.Message) {
	if msg == wire.Ignored {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.m.stats.wakeups.Add(1)
	if !e.yielding { // it may be the message of our own release; the timer comes soon
		e.ask = true
		e.stepLocked()
	}
}

// subscribed is called each time Redis confirms the subscription. What was
// published before then has been missed, so every confirmation is followed by a try.
func (e *entry) subscribed() {
	e.mu.Lock()
	e.ask = true
	e.stepLocked()
	e.mu.Unlock()
}

// wakeUp is called by the timer.
func (e *entry) wakeUp() {
	e.mu.Lock()
	e.m.stats.polls.Add(1)
	e.yielding = false
	e.ask = true
	e.stepLocked()
	e.mu.Unlock()
}

// wakeAfter arms the timer. A firing that was under way already costs one request.
func (e *entry) wakeAfter(d time.Duration) {
	if e.timer == nil {
		e.timer = time.AfterFunc(d, e.wakeUp)
	} else {
		e.timer.Reset(d)
	}
}

func (e *entry) stopTimer() {
	if e.timer != nil {
		e.timer.Stop()
	}
}

// pollAfter is how long to wait for a message while another owner holds the lock for
// ttl: its expiry is not announced, so not beyond that; nor beyond the poll interval,
// from which up to a fifth is taken so that processes do not ask in step.
func (e *entry) pollAfter(ttl time.Duration) time.Duration {
	poll := e.m.poll - rand.N(e.m.poll/5+1)
	if ttl < 0 { // a foreign lock without TTL
		return poll
	}
	return min(poll, ttl+2*time.Millisecond)
}

// close ends everything for Manager.Close.
func (e *entry) close() {
	e.mu.Lock()
	e.closed = true
	e.failLocked(ErrClosed, nil)
	var all []ended
	if h := e.hold; h != nil {
		all = e.endHoldLocked(h, ErrClosed)
		e.startReleaseLocked(h, nil)
	}
	e.stepLocked()
	e.mu.Unlock()
	announceAll(all)
}

// noVerdict is the error of a caller whose ctx ended before Redis let it in.
func (e *entry) noVerdictLocked(ctx context.Context, name string) error {
	causes := contextCauses(ctx)
	switch {
	case e.hold != nil:
		return newLockError(ErrNotAcquired, name, causes...)
	case e.trouble != nil:
		return newLockError(ErrUnavailable, name, append(causes, e.trouble)...)
	case !e.refused && e.current != nil && time.Since(e.current.sent) >= silence,
		!e.refused && e.release != nil && time.Since(e.release.begun) >= silence:
		return newLockError(ErrUnavailable, name, append(causes, errSilent)...)
	}
	return newLockError(ErrNotAcquired, name, causes...)
}

// silence is how long Redis may leave the first question unanswered before a caller
// whose context ends meanwhile is told of an outage instead of a busy lock.
const silence = 50 * time.Millisecond

// pauseLocked returns the next pause while Redis is in trouble.
func (e *entry) pauseLocked() time.Duration {
	if e.pauses == nil {
		e.pauses = newBackOff()
	}
	return e.pauses.NextBackOff()
}

// newBackOff returns pauses from 10 ms to a second, jittered, without end.
func newBackOff() *backoff.ExponentialBackOff {
	return backoff.NewExponentialBackOff(
		backoff.WithInitialInterval(10*time.Millisecond),
		backoff.WithMultiplier(2),
		backoff.WithMaxInterval(time.Second),
		backoff.WithMaxElapsedTime(0),
	)
}
