package lock

import (
	"time"

	"github.com/holdfast-go/holdfast/internal/wire"
)

// World is what a step may ask beside its event: the time, chance, and what the process knows apart from the lock. It also does
// what a step can only do and learn at once: to rely on the inbox, to expect a message, and to change the schedule.
type World interface {
	Now() time.Time
	Roughly() time.Duration // after Settings.Epoch, for people: up to a millisecond old
	Chance(n int64) int64   // a number from 0 to below n
	Pauses() Pauses         // new ones
	Number() uint64         // of an owner id that no other has

	Hears() bool                        // the process gets messages: its inbox is subscribed
	Denied() bool                       // Redis denies it the inbox
	Session() uint64                    // numbers the subscriptions of the inbox: messages between two of them have been missed
	OwnListeners(keys *wire.Keys) int64 // how many of the clients that hear the lock's channel are this process, as far as the server knows that a script runs on

	// Rely is Hears for a request that tells Redis so, and true until Unrely. To look in the step and to rely after it would not
	// do: the process can leave its inbox in between.
	Rely() bool
	Unrely()

	// Expect waits for a message to a claim that stands in a queue, or to a hold that may linger, and returns the one that has
	// come already; nil if there is none. To look in the step and to wait after it would lose the one that comes in between.
	Expect(h *Hold) *wire.Notice
	Forget(h *Hold)

	// Linger records that h lingers since then, after Settings.Epoch. It returns the hold that has done so for longest if too many
	// do; nil: they are not. A lock has one at most. Lingers is since when h does. Unlinger ends it.
	Linger(h *Hold, since time.Duration) (oldest *Hold)
	Lingers(h *Hold) (since time.Duration)
	Unlinger(h *Hold)

	Closing() bool     // Close has been called
	Silence() error    // why requests bring no answer
	Unanswered() error // that one has brought none in time

	PatienceFor(ttl time.Duration) time.Duration         // how long Redis has to answer a request for a lock of this TTL
	AcquirePatience(t *Terms, once bool) time.Duration   // likewise, an acquire. Callers that ask once wait for the first answer of all for longer; others ask again
	AnswerPatience() time.Duration                       // likewise, a holder that a TryLock asks
	AskPatience() time.Duration                          // likewise, what no caller waits for
	TokenSeen(keys *wire.Keys) uint64                    // the highest fencing token of the lock that this process has seen; 0: none
	SawToken(keys *wire.Keys, token uint64)              // has it remember one
	Schedule(p Plan)                                     // at once: a step tells a caller of its lease, which is in the schedule by then
	Confirm(p Plan) (deadline time.Time, scheduled bool) // of a hold whose TTL a request has set, see schedule.Heap
	Scheduled(h *Hold) bool

	Room() *Effects // for the effects of an event
	// NewBid, NewTry and NewRelease make the machine's part of what the shell sends, in one allocation with its own. The bid is for w.
	NewBid(w *Waiter) *Bid
	NewTry() *Try
	NewRelease() *Release
}

// Pauses grow.
type Pauses interface{ NextBackOff() time.Duration }

// Settings are the same for all locks of a process.
type Settings struct {
	Epoch       time.Time // no time of an event is before or at it
	Poll        time.Duration
	Slice       time.Duration
	ReadSlice   time.Duration // how often the readers of the process ask whether a writer waits elsewhere
	Patience    time.Duration // for how long a silent waiter keeps its place
	Aside       time.Duration // see mutex.go; tests change it
	Readmission time.Duration // see trouble.go; tests change it
	Turns       int           // grants by the server in a row, which the scripts count to as well (pass_on in scripts/lib/grant.lua)
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

	Gone  *Lease   // Unlock has given it up; nil: none. Apart, because most of them have no other effect
	told  *Waiter  // whose outcome is there, in this order; nil: none
	last  *Waiter  // of them
	room  *Effects // nil: no others, as most events of a local hand-off
	polls bool     // it sends requests because no message has come
}

// Begin makes a zero value the moment of an event. It is made in its place: to copy one that was just written takes the processor
// longer than all else that a local hand-off does here.
func (m *Moment) Begin(w World, s *Settings) { m.world, m.set = w, s }

// BeginAt is Begin for an event whose time the caller has read.
func (m *Moment) BeginAt(w World, s *Settings, at time.Time) {
	m.Begin(w, s)
	m.date(at)
}

// date sets the time of the event.
func (m *Moment) date(at time.Time) { m.at, m.age = at, m.ageOf(at) }

// look reads the time of the event. It is apart because Now and Age are so short that they cost no call.
func (m *Moment) look() { m.date(m.world.Now()) }

// Now is the time of the event.
func (m *Moment) Now() time.Time {
	if m.age == 0 {
		m.look()
	}
	return m.at
}

// Age is Now, after Settings.Epoch.
func (m *Moment) Age() time.Duration {
	if m.age == 0 {
		m.look()
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
