package lock

import (
	"time"

	"github.com/holdfast-go/holdfast/internal/renewal"
	"github.com/holdfast-go/holdfast/internal/validity"
	"github.com/holdfast-go/holdfast/internal/wire"
)

// World is what a step may ask beside its event and the settings: what the process knows apart from the lock. It also does
// what a step can only do and learn at once: to rely on the inbox, to expect a message, and to change the schedule.
type World interface {
	Roughly() time.Duration // after Settings.Epoch, for people: up to a millisecond old
	Number(n int) uint64    // the first of n numbers of owner ids that no other has
	Facts() Facts
	Room() *Effects                   // for the effects of an event
	Silence() error                   // why requests bring no answer
	TokenSeen(keys *wire.Keys) uint64 // the highest fencing token of the lock that this process has seen; 0: none

	// Rely returns the facts for a request that tells Redis whether the process hears its inbox. A process that hears it does so until
	// the effects of an event say that the request has ended (Effects.Unrelied). To look in the step and to rely after it would not do:
	// the process can leave its inbox in between.
	Rely() Facts

	// Expect waits for a message to a claim that stands in a queue, or to a hold that may linger, and returns the one that has
	// come already; nil if there is none. To look in the step and to wait after it would lose the one that comes in between.
	Expect(h *Hold) *wire.Notice
	Forget(h *Hold)

	// Schedule changes the plan of a hold at once: a step tells a caller of its lease, which is in the schedule by then. It returns
	// what [renewal.Schedule.Change] does.
	Schedule(h *Hold, p renewal.Plan) (deadline time.Time)
	Scheduled(h *Hold) bool
}

// Facts are what a process knows apart from its locks. An event reads them once, if at all, and again when it relies on them.
type Facts struct {
	Inbox     Inbox
	Session   uint64        // numbers the subscriptions of the inbox, from 1 on: messages between two of them have been missed
	RoundTrip time.Duration // see validity.Patience
	First     time.Duration // how much of the time for the first answer of all is left; 0: it has come, or that time is over
}

// Inbox is whether the process hears the messages for it.
type Inbox uint8

const (
	Unheard     Inbox = iota + 1
	Heard             // it is subscribed
	InboxDenied       // Redis denies it
)

// Settings are the same for all locks of a process.
type Settings struct {
	Now         func() time.Time
	Chance      func(n int64) int64 // draws a number from 0 to below n, for any goroutine
	Epoch       time.Time           // no time of an event is before or at it
	Poll        time.Duration
	Slice       time.Duration
	ReadSlice   time.Duration // how often the readers of the process ask whether a writer waits elsewhere
	Patience    time.Duration // for how long a silent waiter keeps its place
	Aside       time.Duration // see aside.go; tests change it
	Readmission time.Duration // see trouble.go; tests change it
	Turns       int           // grants by the server in a row, which the scripts count to as well (pass_on in scripts/lib/grant.lua)
	FirstAtMost time.Duration // how long a request may wait for a new connection
	Unanswered  error         // why a request has failed that has brought no answer in time
	Confirm     bool          // tests: no grant is trusted without asking
}

// Moment is an event: what it may ask, and its effects. All that it calls is passed it. So an event has one
// time. It is read when a step first asks for it, which the steps of a local hand-off do not. That is after the mutex of the lock
// was taken: no wait for it makes the time too early. Only the moment of an Unlock is that of the call, because the
// lease is given up if it was valid then. A hold whose deadline is as near as such a wait is not passed on (Hold.sound).
type Moment struct {
	world World
	set   *Settings
	at    time.Time     // the time, once it is read
	age   time.Duration // likewise, after Settings.Epoch; 0: it is not read yet
	facts Facts         // once they are read; their Inbox is 0 before
	rang  alarm         // it began with; alarmOff: with none

	Gone *Lease   // Unlock has given it up; nil: none. Apart, because most of them have no other effect
	Told *Waiter  // whose outcome is there, in this order: Waiter.Next has the next one; nil: none
	last *Waiter  // of them
	Room *Effects // what else it wants done; nil: nothing, as most events of a local hand-off
}

// Effects are what an event wants done outside. The steps of an event collect them in its moment, and its shell performs them:
// some before it gives up the lock's mutex, the others when no mutex is held, because code of the user runs, which listens to
// contexts or handles what is logged.
type Effects struct {
	// A later event of the lock must not overtake these: a request could be sent after the one that was to follow it.
	Report   CloseReport
	Wrote    bool        // a server has taken a write
	Unrelied int         // requests that have ended and relied on the inbox, see World.Rely
	Waits    Wait        // callers go on waiting
	Saw      uint64      // the highest fencing token of the lock, to be remembered; 0: it is not seen
	Counts   Counts      // for statistics
	Sends    []Send      // requests, in this order
	Limits   []*Limit    // whose timers may have to be set, or stopped
	Pauses   []*Repeated // likewise
	Answers  []Answer    // to calls of Unlock

	Wanted []*Lease  // whose callers are to know that another owner wants the lock
	Ends   []Ended   // leases that have ended but for Moment.Gone, in this order
	GaveUp []Failure // releases and downgrades that have ended and Redis has not confirmed
}

// effects returns those of the event, to add to them.
func (m *Moment) effects() *Effects {
	if m.Room == nil {
		m.Room = m.world.Room()
	}
	return m.Room
}

// send adds a request of a lock.
func (m *Moment) send(lk *Lock, s Send) {
	x := m.effects()
	s.Lock = lk
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

// syncLimit has the shell compare l with what runs for it.
func (m *Moment) syncLimit(l *Limit) {
	x := m.effects()
	x.Limits = append(x.Limits, l)
}

// syncPause has the shell compare the pause of r with what runs for it.
func (m *Moment) syncPause(r *Repeated) {
	x := m.effects()
	x.Pauses = append(x.Pauses, r)
}

// Begin makes a zero value the moment of an event.
func (m *Moment) Begin(w World, s *Settings) { m.world, m.set = w, s }

// Date sets the time of the event, which the shell has read before it.
func (m *Moment) Date(at time.Time) { m.at, m.age = at, m.ageOf(at) }

// tell adds a waiter, which has left the queue and whose outcome is there.
func (m *Moment) tell(w *Waiter) {
	if m.last == nil {
		m.Told = w
	} else {
		m.last.Next = w
	}
	m.last = w
}

// Now is the time of the event.
func (m *Moment) Now() time.Time {
	if m.age == 0 {
		m.Date(m.set.Now())
	}
	return m.at
}

// Age is Now, after Settings.Epoch.
func (m *Moment) Age() time.Duration {
	if m.age == 0 {
		m.Date(m.set.Now())
	}
	return m.age
}

// roughly is Age for people.
func (m *Moment) roughly() time.Duration {
	if m.age == 0 {
		return m.world.Roughly()
	}
	return m.age
}

// ageOf is a time after Settings.Epoch.
func (m *Moment) ageOf(t time.Time) time.Duration { return t.Sub(m.set.Epoch) }

// knows is what the process knows.
func (m *Moment) knows() *Facts {
	if m.facts.Inbox == 0 {
		m.facts = m.world.Facts()
	}
	return &m.facts
}

// sessionFor is session for a request that wants such a place. For a waiter the process keeps its inbox until the request has ended
// (see Try.relies).
func (m *Moment) sessionFor(p Place) uint64 {
	if p != NoPlace {
		m.facts = m.world.Rely()
	}
	return m.session()
}

// session is the one in which the process hears its inbox; 0: it does not.
func (m *Moment) session() uint64 {
	if m.knows().Inbox != Heard {
		return 0
	}
	return m.knows().Session
}

// patienceFor is how long Redis has to answer a request for a lock of this TTL.
func (m *Moment) patienceFor(ttl time.Duration) time.Duration {
	return validity.Patience(ttl, m.knows().RoundTrip)
}

// askPatience is how long it has to answer what no caller waits for.
func (m *Moment) askPatience() time.Duration { return validity.AskPatience(m.knows().RoundTrip) }

// acquirePatience is patienceFor an acquire. Callers that ask once wait for the first answer of all for longer; others ask again.
func (m *Moment) acquirePatience(t *Terms, once bool) time.Duration {
	d := m.patienceFor(t.TTL)
	if once {
		d = max(d, min(m.knows().First, t.TTL/4))
	}
	return d + t.AckWithin
}

// dialFor is how long a request that a caller waits for may take where go-redis has to dial: as long as a plain command, while
// enough is left of the lease. Copies before this one have spent some of that. Requests for callers of Lock are repeated instead.
func (m *Moment) dialFor(t *Terms, spent time.Duration) time.Duration {
	return min(m.set.FirstAtMost, t.TTL/2) - spent
}

// CloseReport is what Close is to know of an event.
type CloseReport struct {
	More    int      // requests and releases that have begun, less those that have ended
	Trouble error    // why a request of a release has brought no answer; nil: none failed
	Denied  *Failure // a release that has ended and Redis has not confirmed; nil: none did
}

// Wait is why callers of a lock go on waiting: a request brought no verdict. The zero value is none.
type Wait struct {
	Lock  *Lock
	Cause error
}

// Counts are what an event adds to the statistics.
type Counts struct{ Troubles, Polls uint64 }

// Send is a request to be sent. What it says is in its fields.
type Send struct {
	Lock     *Lock
	Request  Request
	Copy     Copy
	Patience time.Duration
	Dial     time.Duration // likewise, where a new connection is needed; 0: no longer
	Trace    any           // of the caller, carried only; nil: none
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
