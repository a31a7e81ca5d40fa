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
	Turns       int           // grants by the server in a row, which the scripts count to as well (prelude/turn.lua)
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
