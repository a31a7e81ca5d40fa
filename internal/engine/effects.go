package engine

import (
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/internal/command"
	"github.com/holdfast-go/holdfast/internal/wire"
)

// effects are what an event wants done outside. The steps of an event collect them in its moment, and unlock performs them:
// some before it gives up entry.mu, the others when no lock is held, because code of the user runs, which listens to
// contexts or handles what is logged.
type effects struct {
	first  *ordered // nil: none, as most events of a local hand-off
	gone   Ended    // of a lease that Unlock has given up; zero: none. Apart, because most of them have no other effect
	others []effect // in this order
}

// ordered are the effects that a later event of the entry must not overtake: a request could be sent after the one that was
// to follow it. So entry.mu is held while they are performed.
type ordered struct {
	close  closeReport
	wrote  bool            // a server has taken a write, see Subscriber.Wrote
	calls  []*command.Call // requests, in this order
	timers []timed         // that may have to be set, or stopped
}

// rooms are for the ordered effects of one event at a time.
var rooms = sync.Pool{New: func() any { return new(ordered) }}

// order returns the ordered effects, to add to them.
func (m *moment) order() *ordered {
	if m.first == nil {
		m.first = rooms.Get().(*ordered)
	}
	return m.first
}

// leave empties the room for another event. That of an event with many effects is not kept.
func (o *ordered) leave() {
	const many = 16
	if len(o.calls) > many || len(o.timers) > many {
		return
	}
	clear(o.calls)
	clear(o.timers)
	*o = ordered{calls: o.calls[:0], timers: o.timers[:0]}
	rooms.Put(o)
}

// plan is a change of the schedule. What it is made of is the hold's, and the event's.
type plan struct {
	hold *hold
	what planned
	at   time.Time     // when the request was sent that has set the TTL; of planEnd: the deadline
	set  time.Duration // that TTL
	ttl  time.Duration // that renewals set
}

type planned uint8

const (
	planDrop  planned = iota // it is not in the schedule any more
	planEnd                  // it is not renewed, and ends at its deadline
	planFixed                // likewise, with a TTL
	planRenew                // it is renewed, or kept if it is a place in a queue
	planKept                 // the place was
	planRetry                // it was not: soon again
)

// schedule changes the schedule. That is done at once: a step tells a caller of its lease, which is in the schedule by then.
func (m *moment) schedule(p plan) {
	eng := m.engine
	s, item := eng.scheduler, &p.hold.item
	switch p.what {
	case planDrop:
		s.Remove(item)
	case planEnd:
		s.AddEnd(item, p.at)
	case planFixed:
		s.Add(item, p.at, p.set, p.ttl, false)
	case planRenew:
		s.Add(item, p.at, p.set, p.ttl, true)
		if p.hold.phase == held {
			eng.warm.Do(func() { eng.Executor.Warm(eng.life) })
		}
	case planKept:
		s.Confirm(item, p.at, p.set, p.ttl)
	case planRetry:
		s.Retry(item)
	}
}

// closeReport is what Close is to know of an event.
type closeReport struct {
	more    int   // requests and releases that have begun, less those that have ended
	trouble error // why a request of a release has brought no answer; nil: none failed
	denied  error // why a release has ended that Redis has not confirmed; nil: none did
}

// send adds a request.
func (m *moment) send(c *command.Call) {
	o := m.order()
	o.calls = append(o.calls, c)
}

type effect interface{ perform(eng *Engine) }

// then adds an effect.
func (m *moment) then(x effect) { m.others = append(m.others, x) }

// unlock ends the event of m, which took e.mu.
func (e *entry) unlock(m *moment) {
	m.performOrdered()
	e.sync(m)
	e.mu.Unlock()
	m.perform()
}

// unlockAll ends an event that took the mutexes of several entries.
func unlockAll(entries []*entry, m *moment) {
	m.performOrdered()
	for _, e := range entries {
		e.sync(m)
		e.mu.Unlock()
	}
	m.perform()
}

// performOrdered reports to Close before a request can be answered, and the begin of one before the end of another.
func (m *moment) performOrdered() {
	o := m.first
	if o == nil {
		return
	}
	if o.close != (closeReport{}) {
		m.engine.report(o.close)
	}
	if o.wrote {
		m.engine.Subscriber.Wrote()
	}
	for _, c := range o.calls {
		if !m.engine.Executor.Submit(m.now(), c) {
			m.then(unsent{c})
		}
	}
	for _, x := range o.timers {
		x.syncTimer(m.now())
	}
	m.first = nil
	o.leave()
}

// unsent is the end of a request that the executor did not take, because it has been stopped: an event of its own, like an
// answer.
type unsent struct{ call *command.Call }

func (x unsent) perform(*Engine) {
	x.call.Handler.Replied(x.call, command.Reply{Outcome: command.Closed, Err: Closed})
}

// isUnsent reports whether r is the end of a request that the executor did not take, because Close has stopped it.
func isUnsent(r command.Reply) bool { return r.Err == Closed }

func (m *moment) perform() {
	if m.gone.lease != nil {
		m.gone.Announce()
	}
	for _, x := range m.others {
		x.perform(m.engine)
	}
}

// asyncOutcome is the outcome of a LockAsync. The waiter has left the queue under entry.mu, which it does once, so there is
// one for each, and no later event has another. If the lease ends before its caller gets it, the caller gets it all the same.
type asyncOutcome struct {
	outcome
	name   string
	told   func(*Lease, error)
	unhook func() bool // stops listening to the context, which may be code of the user; nil: nothing listens
}

func (x asyncOutcome) perform(eng *Engine) {
	if x.unhook != nil {
		x.unhook()
	}
	x.told(x.lease, eng.explain(x.name, x.verdict))
}

// holdLost is the loss of a hold, with its leases. They are none if only the answer to their Unlock has shown it.
type holdLost struct {
	name   string // of one of the leases
	reason lossReason
	leases []Ended
}

func (x holdLost) perform(eng *Engine) {
	eng.Telemetry.Lost(string(x.reason))
	eng.Stats.Lost.Add(1)
	announceAll(x.leases)
	eng.Journal.Lost(x.name, string(x.reason))
}

// holdOver is the end of a hold by WithMaxHold.
type holdOver struct {
	name   string
	after  time.Duration
	leases []Ended
}

func (x holdOver) perform(eng *Engine) {
	eng.Stats.Lost.Add(1)
	announceAll(x.leases)
	eng.Journal.MaxHold(x.name, x.after)
}

// holdClosed is the end of a hold by Close.
type holdClosed []Ended

func (x holdClosed) perform(*Engine) { announceAll(x) }

// leaseReturned is the end of a lease that no caller has held, or that was a part: it is not measured.
type leaseReturned Ended

func (x leaseReturned) perform(*Engine) { Ended(x).tell() }

// releaseGaveUp is the end of a release or a downgrade that Redis has not confirmed.
type releaseGaveUp struct {
	name string
	err  error
}

func (x releaseGaveUp) perform(eng *Engine) {
	if eng.life.Err() == nil { // else Close has said so
		eng.Journal.GaveUp(x.name, x.err)
	}
}

// grantForOther is a grant for a waiter of another entry: a mutex and a fair lock of one name have a queue in Redis.
type grantForOther struct {
	claim  *hold
	notice wire.Notice
}

func (x grantForOther) perform(*Engine) { x.claim.entry.noticed(x.claim, x.notice) }
