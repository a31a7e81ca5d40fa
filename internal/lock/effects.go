package lock

import "time"

// Effects are what an event wants done outside. The steps of an event collect them in its moment, and its shell performs them:
// some before it gives up the lock's mutex, the others when no mutex is held, because code of the user runs, which listens to
// contexts or handles what is logged.
type Effects struct {
	// A later event of the lock must not overtake these: a request could be sent after the one that was to follow it.
	Report  CloseReport
	Wrote   bool        // a server has taken a write
	Counts  Counts      // for statistics
	Oldest  *Hold       // of another lock, which is to be dismissed, because too many linger; nil: none
	Sends   []Send      // requests, in this order
	Limits  []*Limit    // whose timers may have to be set, or stopped
	Pauses  []*Repeated // likewise
	Answers []Answer    // to calls of Unlock

	Ends   []Ended   // leases that have ended but for Moment.Gone, in this order
	GaveUp []Failure // releases and downgrades that have ended and Redis has not confirmed
}

// CloseReport is what Close is to know of an event.
type CloseReport struct {
	More    int      // requests and releases that have begun, less those that have ended
	Trouble error    // why a request of a release has brought no answer; nil: none failed
	Denied  *Failure // a release that has ended and Redis has not confirmed; nil: none did
}

// Counts are what an event adds to the statistics.
type Counts struct{ Troubles, Polls, Granted uint64 }

// Send is a request to be sent. What it says is in its fields.
type Send struct {
	Request  Request
	Patience time.Duration
	Trace    any  // of the caller, carried only; nil: none
	Lapses   bool // if it is overdue before it was sent, it is not: another one will be
}

// Answer is for a call of Unlock, which only the shell knows.
type Answer struct {
	To      any
	Verdict *Verdict
}

// Failure is the end of a release or a downgrade that Redis has not confirmed.
type Failure struct {
	Lock    *Lock
	Lease   *Lease // names it; nil: none does
	Verdict *Verdict
}

// Ended is the end of leases.
type Ended struct {
	Lock   *Lock
	Lease  *Lease // names the lock; nil: none does
	Leases []*Lease
	How    Ending
	Reason Reason        // Lost
	Limit  time.Duration // LimitReached
}

// Ending is what is told of the end of leases.
type Ending uint8

const (
	Lost         Ending = iota // of a hold. There is no lease if only the answer to its Unlock has shown it
	LimitReached               // likewise, by WithMaxHold
	ByClose
	GivenBack // a lease that no caller has held, or that was a part: it is not measured
)

// Plan is a change of the schedule. What it is made of is the hold's, and the event's.
type Plan struct {
	Hold *Hold
	What Planned
	At   time.Time     // when the request was sent that has set the TTL; of PlanEnd: the deadline
	Set  time.Duration // that TTL
	TTL  time.Duration // that renewals set
}

// Planned is what becomes of a hold, or a place in a queue.
type Planned uint8

const (
	PlanDrop  Planned = iota // it is not in the schedule any more
	PlanEnd                  // it is not renewed, and ends at its deadline
	PlanFixed                // likewise, with a TTL
	PlanRenew                // it is renewed, or kept if it is a place in a queue
	PlanKept                 // the place was
	PlanRetry                // it was not: soon again
)

// effects returns those of the event, to add to them.
func (m *Moment) effects() *Effects {
	if m.room == nil {
		m.room = m.world.Room()
	}
	return m.room
}

// Effects returns what the event wants done beside Gone and Told; nil: nothing.
func (m *Moment) Effects() *Effects { return m.room }

// send adds a request.
func (m *Moment) send(s Send) {
	x := m.effects()
	x.Sends = append(x.Sends, s)
}

// end adds the end of leases.
func (m *Moment) end(d Ended) {
	x := m.effects()
	x.Ends = append(x.Ends, d)
}

// answer adds an answer to a call of Unlock.
func (m *Moment) answer(to any, v *Verdict) {
	x := m.effects()
	x.Answers = append(x.Answers, Answer{to, v})
}

// tell adds a waiter, which has left the queue and whose outcome is there.
func (m *Moment) tell(w *Waiter) {
	if m.last == nil {
		m.told = w
	} else {
		m.last.next = w
	}
	m.last = w
}

// Told returns the first waiter whose outcome is there; nil: none. NextTold has the others.
func (m *Moment) Told() *Waiter { return m.told }

// NextTold returns the next waiter that the same event has told. Once its caller knows, w may be parked again.
func (w *Waiter) NextTold() *Waiter { return w.next }
