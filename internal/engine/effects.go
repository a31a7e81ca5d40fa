package engine

import (
	"time"

	"github.com/holdfast-go/holdfast/internal/command"
	"github.com/holdfast-go/holdfast/internal/wire"
)

// effects are what an event wants done outside. The steps of an event collect them in its moment, and unlock performs them:
// some before it gives up entry.mu, the others when no lock is held, because code of the user runs, which listens to
// contexts or handles what is logged.
type effects struct {
	ordered
	gone   Ended    // of a lease that Unlock has given up; zero: none. Apart, because most of them have no other effect
	others []effect // in this order
}

// ordered are the effects that a later event of the entry must not overtake: a request could be sent after the one that was
// to follow it. So entry.mu is held while they are performed.
type ordered struct {
	close closeReport
	wrote bool            // a server has taken a write, see Subscriber.Wrote
	call  *command.Call   // the first request; nil: none. Apart, because most events have no more
	calls []*command.Call // the others, in this order
}

// closeReport is what Close is to know of an event.
type closeReport struct {
	more    int   // requests and releases that have begun, less those that have ended
	trouble error // why a request of a release has brought no answer; nil: none failed
	denied  error // why a release has ended that Redis has not confirmed; nil: none did
}

// send adds a request.
func (m *moment) send(c *command.Call) {
	if m.call == nil {
		m.call = c
	} else {
		m.calls = append(m.calls, c)
	}
}

type effect interface{ perform(eng *Engine) }

// then adds an effect.
func (m *moment) then(x effect) { m.others = append(m.others, x) }

// unlock ends the event of m, which took e.mu.
func (e *entry) unlock(m *moment) {
	m.performOrdered()
	e.mu.Unlock()
	m.perform()
}

// unlockAll ends an event that took the mutexes of several entries.
func unlockAll(entries []*entry, m *moment) {
	m.performOrdered()
	for _, e := range entries {
		e.mu.Unlock()
	}
	m.perform()
}

// performOrdered reports to Close before a request can be answered, and the begin of one before the end of another.
func (m *moment) performOrdered() {
	if m.close != (closeReport{}) {
		m.engine.report(m.close)
	}
	if m.wrote {
		m.engine.Subscriber.Wrote()
	}
	if m.call != nil {
		m.submit(m.call)
	}
	for _, c := range m.calls {
		m.submit(c)
	}
}

// submit has the executor send c. If that has been stopped, the end of c is an event of its own, like any answer.
func (m *moment) submit(c *command.Call) {
	if !m.engine.Executor.Submit(m.now(), c) {
		m.then(unsent{c})
	}
}

// unsent is the end of a request that the executor did not take.
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
