package lock

import (
	"slices"
	"time"

	"github.com/holdfast-go/holdfast/internal/validity"
)

// Repeated is the request that gives up a hold, or makes the read side of it: what a release and a downgrade have in
// common. It is sent until Redis has answered or the lock has expired, even if no caller waits for it. The scripts
// check the owner id, so it can be sent as often as needed.
type Repeated struct {
	Hold *Hold

	lock       *Lock
	request    Request       // the release or the downgrade
	lease      *Lease        // whose end began it, or one of those: names the lock; nil: none did
	barred     time.Duration // when Redis first did not let the client, after Settings.Epoch; 0: it did not say so
	began      time.Time     // when the first request was made
	trouble    error         // why the latest request brought no answer; nil: none has
	patient    time.Time     // until then Unlock waits
	until      time.Time     // by then the lock, or the place in the queue, is gone by itself
	pauses     pauses
	resumes    time.Duration // the end of the pause before the next request, after Settings.Epoch; 0: there is none
	colliding  int32         // how many claims or holds it is counted as in Lock.releasing
	lapsed     bool          // it began after the deadline, by the monotonic or by the wall clock
	settled    bool          // nothing more is to be sent
	logged     bool          // the log says that the lease has ended early: nothing is said of this
	generation uint32        // of what it asks for
	copies                   // of that
	answers                  // for the calls of Unlock that wait
}

// Of is the lock.
func (r *Repeated) Of() *Lock { return r.lock }

// Resumes is the end of the pause before the next request, after Settings.Epoch; 0: there is none.
func (r *Repeated) Resumes() time.Duration { return r.resumes }

// Trouble is why the latest request brought no answer; nil: none has.
func (r *Repeated) Trouble() error { return r.trouble }

// isFor makes r the request about h.
func (r *Repeated) isFor(m *Moment, h *Hold, x Request) {
	now := m.Now()
	r.lock, r.Hold, r.request, r.lease = h.Lock, h, x, h.leases
	r.began, r.patient = now, now.Add(m.patienceFor(h.Terms.TTL))
	r.lapsed = !validity.Valid(now, h.Deadline)
}

func (r *Repeated) send(m *Moment, trace any) {
	full := m.patienceFor(r.Hold.Terms.TTL)
	patience := full
	if r.heard == nothing {
		patience = r.patient.Sub(m.Now()) // Unlock's, over all copies
	}
	r.flying++
	m.send(r.lock, Send{Request: r.request, Copy: Copy{Generation: r.generation}, Patience: patience, Dial: m.dialFor(r.Hold.Terms, full-patience), Trace: trace})
}

// endsWith records that a request has ended. It reports whether its answer counts: r is not settled, and c is a
// copy of what it asks for now. A late copy of a release does not end the request that has followed it and clears the queue.
func (r *Repeated) endsWith(m *Moment, c *Copy, reply *Reply) bool {
	if !r.isCurrent(c) {
		return false
	}
	r.ends(&c.flight)
	if reply.Outcome == Unsent && !r.settled {
		r.settle(m, Because(Unavailable, Closed))
	}
	return !r.settled
}

func (r *Repeated) isCurrent(c *Copy) bool { return c.Generation == r.generation }

// troubled is for a request without an answer. It reports whether Redis has denied it, so that another one is
// futile.
func (r *Repeated) troubled(m *Moment, reply *Reply) (denied bool) {
	m.effects().Counts.Troubles++
	r.trouble, m.effects().Report.Trouble = reply.Cause, reply.Cause
	r.doubt(reply.Outcome)
	return reply.Outcome.Final() || reply.Outcome == Barred && r.barredForLong(m)
}

// barredForLong is that of a lock, for one request.
func (r *Repeated) barredForLong(m *Moment) bool {
	now := m.Age()
	if r.barred == 0 {
		r.barred = now
	}
	return now-r.barred >= m.set.Readmission
}

// again sends the request again after a pause, until the lock has expired.
func (r *Repeated) again(m *Moment) {
	now := m.Now()
	if now.After(r.until) {
		r.settle(m, Because(Unavailable, r.trouble))
		return
	}
	pause := r.pause(m)
	if left := r.patient.Sub(now); r.heard == nothing && left < pause {
		// Unlock has waited as long as it may, over all copies.
		r.giveUpWaiting(m, r.trouble)
	}
	if r.resumes == 0 { // else an earlier copy has failed, and that pause is over sooner
		r.resumes = m.Age() + pause
		m.syncPause(r)
	}
}

// AwaitedPause is the longest pause while an Unlock or Close waits for the answer: a few fit into the time that it
// waits.
const AwaitedPause = 50 * time.Millisecond

// pause returns the next pause.
func (r *Repeated) pause(m *Moment) time.Duration {
	pause := r.pauses.next(m)
	if len(r.later) > 0 { // or Close waits, of which the shell knows
		pause = min(pause, AwaitedPause)
	}
	return pause
}

// resume ends the pause. It reports whether there was one.
func (r *Repeated) resume(m *Moment) bool {
	if r.resumes == 0 {
		return false
	}
	r.resumes = 0
	m.syncPause(r)
	return true
}

// hasten sends the request that a pause puts off.
func (r *Repeated) hasten(m *Moment) {
	if r.resume(m) {
		r.copy(m)
	}
}

// copy sends the request again, unless too many copies of it are on their way.
func (r *Repeated) copy(m *Moment) {
	if !r.full() {
		r.send(m, nil)
	}
}

// giveUpWaiting ends the wait for the request, which itself goes on.
func (r *Repeated) giveUpWaiting(m *Moment, cause error) {
	r.tell(m, Because(Unavailable, cause))
	r.uncollide(m)
}

// Resume is the event that the pause is over, or that Close waits for the answer.
func (lk *Lock) Resume(m *Moment, r *Repeated) {
	r.hasten(m)
	lk.step(m)
}

// Overdue is for a reply that takes too long: Unlock does not wait any longer, the next callers neither,
// and the request is sent over another connection.
func (r *Repeated) Overdue(m *Moment, c *Copy) {
	if r.settled || !r.isCurrent(c) {
		return
	}
	m.effects().Counts.Troubles++
	r.giveUpWaiting(m, m.set.Unanswered)
	r.copy(m)
	r.lock.step(m)
}

// Stranded is for a connection that is dead: the request is sent over another
// one, for which Unlock still waits.
func (r *Repeated) Stranded(m *Moment, c *Copy) {
	if !r.isCurrent(c) {
		return
	}
	r.strands(&c.flight)
	if !r.settled && !r.full() {
		m.effects().Counts.Troubles++
		r.send(m, nil)
		r.lock.step(m)
	}
}

// settle ends it.
func (r *Repeated) settle(m *Moment, v *Verdict) {
	r.settled = true
	r.resume(m)
	r.uncollide(m)
	r.answers.end(m, v)
	x := m.effects()
	x.Report.More--
	if v != nil && v.Fact == Unavailable { // Redis has not confirmed it
		f := Failure{r.lock, r.lease, v}
		x.Report.Denied = &f
		if !r.logged {
			x.GaveUp = append(x.GaveUp, f)
		}
	}
}

func (r *Repeated) uncollide(m *Moment) {
	lk, n := r.lock, r.colliding
	if n == 0 {
		return
	}
	r.colliding = 0
	if lk.releasing -= n; lk.releasing < 0 {
		panic("holdfast: bug: more was given up than began to be")
	}
	lk.gaveUp(n)
	if kinds[lk.Family].bidsEach && lk.places.leaving == r {
		lk.places.leaving = nil
		lk.sendLeavers(m) // the next ones
	}
}

// gaveUp is called when n that were being given up have ended, in whatever order.
func (lk *Lock) gaveUp(n int32) {
	for w := lk.waiters.head; w != nil && lk.onces > 0; w = w.next {
		before := w.behind
		if w.behind -= n; w.Once && before > 0 && w.behind <= 0 {
			lk.missed.add(missedLock | missedPlaces)
		}
	}
}

// answers are what the calls of Unlock learn of a release. The call that began it waits as caller, for as long as
// patience allows; the release itself goes on. Later calls wait in later. Only the shell knows what stands for a call.
type answers struct {
	caller  any      // the Unlock that began it; nil: none waits
	verdict *Verdict // of the whole release, until an Unlock asks again; once settled
	later   []any    // calls of Unlock after one that could not wait longer
	heard   heard
}

// heard is what calls of Unlock have been told.
type heard uint8

const (
	nothing   heard = iota // the Unlock that began it waits
	noSuccess              // it has its answer
	success                // one has returned nil
)

// Await has the Unlock that began the release get its answer as caller.
func (a *answers) Await(caller any) { a.caller = caller }

// tell ends the wait of the Unlock that began the release.
func (a *answers) tell(m *Moment, v *Verdict) {
	if a.heard != nothing {
		return
	}
	a.heard = noSuccess
	if v == nil {
		a.heard = success
	}
	if a.caller != nil {
		m.answer(a.caller, v)
	}
}

// end ends the wait of all with the verdict of the release.
func (a *answers) end(m *Moment, v *Verdict) {
	a.verdict = v
	a.tell(m, v)
	for _, c := range a.later {
		m.answer(c, a.repeat())
	}
	a.later = nil
}

// repeat is the answer to a repeated Unlock. One call gets the success, the others NotHeld.
func (a *answers) repeat() *Verdict {
	if a.heard == success {
		return Because(NotHeld)
	}
	if a.verdict == nil {
		a.heard = success
	}
	return a.verdict
}

// StopWaiting is for a repeated Unlock that does not wait any longer: a later success is for another one.
func (a *answers) StopWaiting(c any) {
	a.later = slices.DeleteFunc(a.later, func(x any) bool { return x == c })
}
