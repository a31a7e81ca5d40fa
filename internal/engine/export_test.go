package engine

import (
	"time"

	"github.com/holdfast-go/holdfast/internal/command"
	"github.com/holdfast-go/holdfast/internal/lock"
	"github.com/holdfast-go/holdfast/internal/pubsub"
	"github.com/holdfast-go/holdfast/internal/renewal"
)

// Moments that do not come by themselves, and figures that users do not need.

// Inside is what a process has of one lock, and a hold of it.
type Inside struct {
	e     *entry
	h     *lock.Hold
	limit *lock.Limit // of the caller
}

// Inside returns the mutex of a name, and what holds it.
func (eng *Engine) Inside(mapped string) Inside {
	e := eng.existing(lock.MutexKind, mapped)
	e.mu.Lock()
	defer e.mu.Unlock()
	x := Inside{e: e, h: e.lock.Held()}
	if x.h != nil {
		x.limit = x.h.Limit
	}
	return x
}

// Inside returns the lock of a lease.
func (l *Lease) Inside() Inside { return Inside{l.entry(), l.in().Hold(), l.in().Limit()} }

// Lock stops all that happens to the lock until Unlock.
func (x Inside) Lock() { x.e.mu.Lock() }

// Unlock lets it go on.
func (x Inside) Unlock() { x.e.mu.Unlock() }

// IsHold reports whether y is of the same hold.
func (x Inside) IsHold(y Inside) bool { return x.h == y.h }

// EditDeadline changes the deadline of the hold.
func (x Inside) EditDeadline(edit func(*time.Time)) {
	x.e.mu.Lock()
	defer x.e.mu.Unlock()
	edit(&x.h.Deadline)
}

// SetEnd sets the end of the hold, which is WithMaxHold's if there is one. The schedule does not come for it.
func (x Inside) SetEnd(at time.Time) {
	x.e.mu.Lock()
	defer x.e.mu.Unlock()
	x.e.engine.scheduler.Change(&x.h.Item, renewal.Plan{What: renewal.Drop})
	if x.h.Limit != nil {
		x.h.Limit.At = at
	} else {
		x.h.Deadline = at
	}
}

// ReachLimitLocked is the timer of WithMaxHold. What it tells when no lock is held, it tells when the caller calls the result, after Unlock.
func (x Inside) ReachLimitLocked() (announce func()) {
	eng := x.e.engine
	ev := new(event)
	ev.Begin(&eng.world, &eng.Settings)
	x.e.lock.ReachLimit(&ev.Moment, x.limit)
	eng.performOrdered(ev, ev.Room)
	x.e.sync(ev)
	return func() { eng.perform(ev) }
}

// Expire has the schedule say that the deadline has passed.
func (x Inside) Expire() { x.e.engine.expire(x.h) }

// ReachLimit is the timer of WithMaxHold.
func (x Inside) ReachLimit() {
	x.e.do(func(m *lock.Moment) { x.e.lock.ReachLimit(m, x.limit) })
}

// Renew has the schedule say that the hold is to be renewed.
func (x Inside) Renew() { x.e.engine.renew([]*lock.Hold{x.h}) }

// Check is what ForceUnlock does.
func (x Inside) Check() { x.e.checkNow() }

// WakeUp is the timer of the waiters. It reports whether another request is wanted.
func (x Inside) WakeUp() bool {
	x.e.do(x.e.lock.WakeUp)
	x.e.mu.Lock()
	defer x.e.mu.Unlock()
	return x.e.lock.WantsRequest()
}

// PollAfter is after how long a waiter asks again.
func (eng *Engine) PollAfter(ttl time.Duration) time.Duration {
	var ev event
	ev.Begin(&eng.world, &eng.Settings)
	return new(lock.Lock).PollAfter(&ev.Moment, ttl)
}

// HearInbox adds a listener to the inbox.
func (eng *Engine) HearInbox(l pubsub.Listener) { eng.Subscriber.Add(eng.inbox.channel, l) }

// WholeOf makes a lease of several locks of leases that were granted, which so many of them are enough for.
func (eng *Engine) WholeOf(need int, parts ...*Lease) *Lease {
	whole := eng.NewLock(lock.RedlockKind, "whole", "", nil)
	g := newGroup(&whole, need)
	for _, p := range parts {
		g.join(p)
	}
	return g.lease
}

// Question returns the handler of a repeatable question, and where its answer comes.
func (eng *Engine) Question() (q interface {
	Replied(*command.Call, command.Reply)
	Stranded(*command.Call)
}, answer <-chan command.Reply) {
	x := &question{engine: eng, repeat: true, done: make(chan command.Reply, 1)}
	return x, x.done
}

// NextPause is how long, without the random part, the entries would pause altogether if another request brought no
// verdict.
func (eng *Engine) NextPause() (d time.Duration) {
	for _, e := range eng.snapshot() {
		e.mu.Lock()
		d += e.lock.NextPause()
		e.mu.Unlock()
	}
	return d
}
