package engine

import (
	"sync"

	"github.com/holdfast-go/holdfast/internal/command"
	"github.com/holdfast-go/holdfast/internal/lock"
)

// rooms are for the effects of one event at a time.
var rooms = sync.Pool{New: func() any { return new(lock.Effects) }}

// recycle empties the room of an event for another one. That of an event with many effects is not kept.
func recycle(x *lock.Effects) {
	const many = 16
	if len(x.Sends) > many || len(x.Limits) > many || len(x.Pauses) > many || len(x.Answers) > many || len(x.Ends) > many {
		return
	}
	clear(x.Sends)
	clear(x.Limits)
	clear(x.Pauses)
	clear(x.Answers)
	clear(x.Ends)
	clear(x.GaveUp)
	*x = lock.Effects{Sends: x.Sends[:0], Limits: x.Limits[:0], Pauses: x.Pauses[:0], Answers: x.Answers[:0], Ends: x.Ends[:0], GaveUp: x.GaveUp[:0]}
	rooms.Put(x)
}

// afterwards is what an event leaves to be done when no lock is held.
type afterwards struct {
	ends   [][]Ended // of the leases of each of Effects.Ends
	unsent []*sent   // requests that the executor did not take, because it has been stopped
}

// unlock ends the event of m, which took e.mu.
func (e *entry) unlock(m *lock.Moment) {
	var after *afterwards
	var gone Ended
	if m.Effects() != nil {
		after = e.engine.performOrdered(m)
	}
	if m.Gone != nil || m.Told() != nil {
		gone = settleLocked(m)
	}
	heard := e.sync(m)
	e.mu.Unlock()
	if m.Gone != nil || m.Told() != nil || m.Effects() != nil {
		e.engine.perform(m, gone, after)
	}
	if heard {
		e.Subscribed()
	}
}

// unlockAll ends an event that took the mutexes of several entries, and sends s if it was made.
func unlockAll(eng *Engine, entries []*entry, m *lock.Moment, s *sweep) {
	after := eng.performOrdered(m)
	unsent := s.call.Script != nil && !eng.Executor.Submit(m.Now(), &s.call)
	gone := settleLocked(m)
	var heard []*entry
	for _, e := range entries {
		if e.sync(m) {
			heard = append(heard, e)
		}
		e.mu.Unlock()
	}
	eng.perform(m, gone, after)
	if unsent {
		s.Replied(&s.call, stoppedReply)
	}
	for _, e := range heard {
		e.Subscribed()
	}
}

// settleLocked is for the lease that an event has ended, and for the waiters whose outcome is there.
func settleLocked(m *lock.Moment) (gone Ended) {
	if l := m.Gone; l != nil {
		gone = (*Lease)(l).closeLocked()
	}
	for w := m.Told(); w != nil; w = w.NextTold() {
		w.Shell.(*waiter).settleLocked(m)
	}
	return gone
}

// stoppedReply is the end of a request that the executor did not take, because Close has stopped it.
var stoppedReply = command.Reply{Outcome: command.Closed, Err: Closed}

// performOrdered does what a later event must not overtake, with the mutex still held. It reports to Close before a request can
// be answered, and the begin of one before the end of another.
func (eng *Engine) performOrdered(m *lock.Moment) *afterwards {
	x := m.Effects()
	if x == nil {
		return nil
	}
	var after *afterwards
	later := func() *afterwards {
		if after == nil {
			after = new(afterwards)
		}
		return after
	}
	if x.Report != (lock.CloseReport{}) {
		eng.report(x.Report)
	}
	if x.Wrote {
		eng.Subscriber.Wrote()
	}
	for i := range x.Sends {
		if s := eng.sentFor(&x.Sends[i]); !eng.Executor.Submit(m.Now(), &s.call) {
			later().unsent = append(later().unsent, s)
		}
	}
	for _, l := range x.Limits {
		syncLimit(l, m.Now())
	}
	for _, r := range x.Pauses {
		eng.syncPause(r, m.Now())
	}
	for _, a := range x.Answers {
		a.To.(chan *Verdict) <- a.Verdict // buffered for it
	}
	for _, d := range x.Ends {
		ended := make([]Ended, len(d.Leases))
		for i, l := range d.Leases {
			ended[i] = (*Lease)(l).closeLocked()
		}
		later().ends = append(later().ends, ended)
	}
	eng.count(&x.Counts)
	return after
}

func (eng *Engine) count(c *lock.Counts) {
	if *c == (lock.Counts{}) {
		return
	}
	eng.Stats.Troubles.Add(c.Troubles)
	eng.Stats.Polls.Add(c.Polls)
	eng.Stats.Granted.Add(c.Granted)
}

// perform does the rest, when no lock is held: code of the user may run.
func (eng *Engine) perform(m *lock.Moment, gone Ended, after *afterwards) {
	var async []*waiter // no caller that waits is kept from its outcome by code of another one
	for w := m.Told(); w != nil; {
		next := w.NextTold() // its caller may park it again when it knows
		if x := w.Shell.(*waiter); x.async == nil {
			x.ready <- struct{}{} // there is room
		} else {
			async = append(async, x)
		}
		w = next
	}
	for _, w := range async {
		w.tell()
	}
	gone.Announce()
	if x := m.Effects(); x != nil {
		for i := range x.Ends {
			eng.announce(&x.Ends[i], after.ends[i])
		}
		for _, f := range x.GaveUp {
			if eng.life.Err() == nil { // else Close has said so
				name := nameOf(f.Lock, f.Lease)
				eng.Journal.GaveUp(name, eng.explain(name, f.Verdict))
			}
		}
		oldest := x.Oldest
		recycle(x)
		if oldest != nil { // an event of its own
			entryOf(oldest.Of()).dismiss(oldest)
		}
	}
	if after == nil {
		return
	}
	for _, s := range after.unsent { // an event of its own, like an answer
		s.Replied(&s.call, stoppedReply)
	}
}

// announce tells of the end of leases.
func (eng *Engine) announce(d *lock.Ended, leases []Ended) {
	switch d.How {
	case lock.Lost:
		eng.Telemetry.Lost(string(d.Reason))
		eng.Stats.Lost.Add(1)
		announceAll(leases)
		eng.Journal.Lost(nameOf(d.Lock, d.Lease), string(d.Reason))
	case lock.LimitReached:
		eng.Stats.Lost.Add(1)
		announceAll(leases)
		eng.Journal.MaxHold(nameOf(d.Lock, d.Lease), d.Limit)
	case lock.ByClose:
		announceAll(leases)
	case lock.GivenBack:
		for _, e := range leases {
			e.tell()
		}
	}
}

// nameOf is what the log calls a lock: by a lease, if there is one.
func nameOf(l *lock.Lock, named *lock.Lease) string {
	if named != nil {
		return named.Name()
	}
	return entryOf(l).name()
}
