package holdfast

import (
	"time"

	"github.com/holdfast-go/holdfast/internal/command"
	"github.com/holdfast-go/holdfast/internal/wire"
)

// Where one goroutine in each of several processes takes the same lock again and again, an
// acquisition is two commands: a release, which gives the lock to the next process, and at
// once a request for a place in the queue. When a process has seen that a few times, its
// releases take that place as well: it is booked for whoever comes. The grant waits for the
// caller then, or the caller for the grant, without a command.
//
// Only short holds book: the script takes longer, and where the lock changes hands seldom, its
// next owner would rather have it sooner.
//
// If nobody comes, the place is given up after a moment, and so is the lock if it has been
// granted: what a wrong guess costs the others. The next one takes as many comebacks again.
//
// Where the lock stays away for longer, who comes back at once steps aside instead: its
// request would keep Redis, and the processors that they share, from telling the next owner.
// Measured with both processes and Redis on the same two cores: a sixth of a hand-over.

// habit is what a process remembers of those who come for a mutex. It is guarded by
// entry.mu.
type habit struct {
	comebacks int           // how often in a row somebody came back in time
	handed    time.Time     // when the lock was handed to another process; zero: it has been back since
	back      bool          // somebody has come since
	round     time.Duration // how long the lock stayed away the last time; 0: not known
	booked    *hold         // the claim that nobody has come for yet; nil: none
}

const (
	// comebackWithin is how soon a caller has to be back, for how long a place is booked, and
	// what a short hold is shorter than. A goroutine that the answer to its Unlock has woken
	// needs as much on busy processors.
	comebackWithin = time.Millisecond
	// habitual is how many comebacks in a row are taken for a habit.
	habitual = 3
	// asideFor is how long after a release whoever comes back asks at the earliest: longer
	// than it takes to tell the next owner. It is so if the lock stayed away for awayFor the
	// last time. If it does not this time, it has been free for a while, once.
	asideFor = time.Millisecond
	awayFor  = 2 * asideFor
)

// bookLocked returns the claim of a place for the release of h to take; nil, where nobody is
// expected, or nothing would be gained.
func (e *entry) bookLocked(h *hold) *hold {
	b := e.habit
	if b == nil || b.comebacks < e.m.habitual || b.booked != nil || e.waiters.Len() > 0 || e.orphan != nil || h.stray() {
		return nil
	}
	brief := time.Since(e.m.epoch)-h.tenure < e.m.comeback
	asks := h.cfg.fixed || h.cfg.acks != nil || !e.m.inbox.live() // its grant is asked about anyway
	if !brief || asks {
		return nil
	}
	c := newHold(e, h.cfg, h.keys, h.kind)
	c.waiter = &waiter{} // nobody: it is never parked
	c.waiter.Value.claim = c
	e.m.inbox.expect(c)
	return c
}

// bookedLocked is called when the release is known to have taken the place, at a time when
// the server's clock showed clock; 0 if that is unknown.
func (r *release) bookedLocked(clock int64, reply command.Reply) {
	c, e := r.booked, r.entry
	r.booked = nil
	b := &c.waiter.Value.bid
	b.queued, b.clock, b.before = true, clock, reply.Sent
	if e.habit == nil || e.habit.booked != nil || e.hold != nil { // it took too long
		e.undoLocked(c)
		return
	}
	e.habit.booked = c
	e.habit.handed, e.habit.back = time.Now(), false
}

// notBookedLocked is called when the release has ended without a word about the place. It has
// not been taken, unless a copy of the request ran whose reply was lost.
func (r *release) notBookedLocked() {
	c := r.booked
	r.booked = nil
	e := r.entry
	e.m.inbox.forget(c)
	c.waiter.Value.queued = r.unclear || r.sent > 0
	e.undoLocked(c)
}

// handedOverLocked is called when a release has given the lock to another process.
func (e *entry) handedOverLocked() {
	if e.kind != mutexKind || e.waiters.Len() > 0 || e.closed {
		return
	}
	if e.habit == nil {
		e.habit = new(habit)
	}
	e.habit.handed, e.habit.back = time.Now(), false
}

// cameLocked is called when a caller comes who will wait.
func (e *entry) cameLocked() {
	if b := e.habit; b != nil && !b.back {
		b.comebacks++
		b.back = true
	}
}

// stepAsideLocked reports whether the only waiter, who has just come, is to ask a moment later.
func (e *entry) stepAsideLocked() bool {
	b := e.habit
	if b == nil || b.booked != nil || b.round < awayFor {
		return false
	}
	left := e.m.aside - time.Since(b.handed)
	if left > 0 {
		e.yieldForLocked(left)
	}
	return left > 0
}

// returnedLocked is called when this process has the lock again.
func (e *entry) returnedLocked(now time.Time) {
	if b := e.habit; b != nil && !b.handed.IsZero() {
		b.round, b.handed = now.Sub(b.handed), time.Time{}
	}
}

// lingerLocked is called when nobody waits. It reports whether the entry is to stay for
// those who may come back.
func (e *entry) lingerLocked() bool {
	b := e.habit
	switch {
	case b == nil:
		return false
	case e.hold != nil || e.releasing > 0:
		return true
	}
	if left := e.m.comeback - time.Since(b.handed); left > 0 && !b.back {
		e.armLocked(left)
		return true
	}
	e.breakHabitLocked()
	return false
}

// breakHabitLocked gives up what is booked, the place, or the lock if that was granted. A
// release that books and is not answered finds no habit then.
func (e *entry) breakHabitLocked() {
	if b := e.habit; b != nil {
		e.habit = nil
		if b.booked != nil {
			e.undoLocked(b.booked)
		}
	}
}

// takeBookingLocked gives what is booked to w, the first waiter.
func (e *entry) takeBookingLocked(w *waiter) {
	c := e.habit.booked
	n := c.waiter.Value.notice
	switch {
	case w.Value.once && (n == nil || !n.Granted || w.Value.claim != nil):
		return // it asks by itself, and does not wait for the place
	case e.hold != nil || !e.adoptLocked(w, c.waiter):
		e.breakHabitLocked()
		return
	}
	e.habit.booked = nil
	e.ask, e.refused = e.onces > 0 && !w.Value.once, true // who asks once does not wait for the place
	e.wakeAfterLocked(e.pollAfter(c.cfg.claim))           // the next owner may have died
	if w.Value.notice = nil; n != nil {
		e.noticedLocked(c, *n) // no hold is lost by it, there is none
	}
}

// parseBooking returns what else the reply of a release that has booked a place says, and
// the server's time in it; any other reply as it is.
func parseBooking(reply any) (rest any, clock int64, booked bool) {
	v, _ := reply.([]any)
	if len(v) != 3 {
		return reply, 0, false
	}
	seconds, _ := v[1].(string)
	microseconds, _ := v[2].(string)
	clock, booked = wire.ParseTime(seconds, microseconds)
	return v[0], clock, booked
}
