package engine

import (
	"time"

	"github.com/holdfast-go/holdfast/internal/wire"
)

// effects are what an event wants done when no lock is held: code of the user runs, which listens to contexts or handles
// what is logged. The steps of an event collect them in its moment, and unlock performs them.
type effects struct {
	gone   Ended    // of a lease that Unlock has given up; zero: none. Apart, because most of them have no other effect
	others []effect // in this order
}

type effect interface{ perform(eng *Engine) }

// then adds an effect.
func (m *moment) then(x effect) { m.others = append(m.others, x) }

// unlock ends the event of m, which took e.mu.
func (e *entry) unlock(m *moment) {
	e.mu.Unlock()
	m.perform()
}

// unlockAll ends an event that took the mutexes of several entries.
func unlockAll(entries []*entry, m *moment) {
	for _, e := range entries {
		e.mu.Unlock()
	}
	m.perform()
}

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
