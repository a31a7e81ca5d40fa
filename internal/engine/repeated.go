package engine

import (
	"context"
	"time"

	"github.com/holdfast-go/holdfast/internal/command"
	"github.com/holdfast-go/holdfast/internal/retry"
	"github.com/holdfast-go/holdfast/internal/validity"
)

// repeated is the request that gives up a hold, or makes the read side of it: what a release and a downgrade have in
// common. It is sent until Redis has answered or the lock has expired, even if no caller waits for it. The scripts
// check the owner id, so it can be sent as often as needed.
type repeated struct {
	entry   *entry
	handler command.Handler // the release or the downgrade
	room    [13]any         // for args; with one more, each release would take 64 bytes more
	call    command.Call    // the first request

	// The following is guarded by entry.mu.

	hold      *hold
	lease     *Lease // whose end began it, or one of those: names the lock; nil: none did
	script    *command.Script
	args      []any
	barred    time.Duration // when Redis first did not let the client, after Engine.Epoch; 0: it did not say so
	trouble   error         // why the latest request brought no answer; nil: none has
	patient   time.Time     // until then Unlock waits
	until     time.Time     // by then the lock, or the place in the queue, is gone by itself
	pauses    *retry.Pauses
	resumes   time.Duration // the end of the pause before the next request, after Engine.Epoch; 0: there is none
	timer     *time.Timer   // of that pause; nil: there is none
	colliding int32         // how many claims or holds it is counted as in entry.releasing
	lapsed    bool          // it began after the deadline, by the monotonic or by the wall clock
	settled   bool          // nothing more is to be sent
	copies                  // of the request with these args
	answers                 // for the calls of Unlock that wait
}

// isFor makes r the request about h.
func (r *repeated) isFor(m *moment, h *hold, handler command.Handler) {
	now := m.now()
	r.entry, r.hold, r.handler, r.lease = h.entry, h, handler, h.leases
	r.patient = now.Add(m.patienceFor(h.cfg.TTL))
	r.lapsed = !validity.Valid(now, h.deadline)
}

// name is what the log calls the lock. The lease is set before a reply can come.
func (r *repeated) name() string {
	if r.lease != nil {
		return r.lease.name
	}
	return r.entry.name
}

func (r *repeated) sendLocked(m *moment, call *command.Call, trace context.Context) {
	*call = command.Call{
		Script:   r.script,
		Args:     r.args,
		Handler:  r.handler,
		Patience: m.patienceFor(r.hold.cfg.TTL),
		Trace:    trace,
	}
	if !r.told {
		call.Patience = r.patient.Sub(m.now()) // Unlock's, over all copies
	}
	r.flying++
	m.send(call)
}

// endsWith records that a request has ended. It reports whether its answer counts: r is not settled, and c is a
// copy of what it asks for now. A late copy of a release does not end the request that has followed it and clears the queue.
func (r *repeated) endsWith(m *moment, c *command.Call, reply command.Reply) bool {
	if !r.isCurrent(c) {
		return false
	}
	r.ends(&c.Roomless)
	if isUnsent(reply) && !r.settled {
		r.settleLocked(m, because(Unavailable, Closed))
	}
	return !r.settled
}

func (r *repeated) isCurrent(c *command.Call) bool { return &c.Args[0] == &r.args[0] }

// troubledLocked is for a request without an answer. It reports whether Redis has denied it, so that another one is
// futile.
func (r *repeated) troubledLocked(m *moment, reply command.Reply) (denied bool) {
	r.entry.engine.Stats.Troubles.Add(1)
	r.trouble = reply.Err
	if reply.Outcome == command.Answered {
		reply.Outcome, r.trouble = command.Unknown, Unexpected(reply.Value)
	}
	m.order().close.trouble = r.trouble
	r.doubt(reply.Outcome)
	return reply.Outcome.Final() || reply.Outcome == command.Barred && r.barredForLongLocked(m)
}

// barredForLongLocked is that of an entry, for one request.
func (r *repeated) barredForLongLocked(m *moment) bool {
	now := m.age()
	if r.barred == 0 {
		r.barred = now
	}
	return now-r.barred >= r.entry.engine.Readmission
}

// againLocked sends the request again after a pause, until the lock has expired.
func (r *repeated) againLocked(m *moment) {
	now := m.now()
	if now.After(r.until) {
		r.settleLocked(m, because(Unavailable, r.trouble))
		return
	}
	pause := r.pauseLocked(m)
	if left := r.patient.Sub(now); !r.told && left < pause {
		// Unlock has waited as long as it may, over all copies.
		r.giveUpWaitingLocked(m, r.trouble)
	}
	if r.resumes == 0 { // else an earlier copy has failed, and that pause is over sooner
		r.resumes = m.age() + pause
		m.sync(r)
	}
}

// awaitedPause is the longest pause while an Unlock or Close waits for the answer: a few fit into the time that it
// waits.
const awaitedPause = 50 * time.Millisecond

// pauseLocked returns the next pause.
func (r *repeated) pauseLocked(m *moment) time.Duration {
	if r.pauses == nil {
		r.pauses = retry.New()
	}
	pause := r.pauses.NextBackOff()
	if len(r.later) > 0 || m.closing() {
		pause = min(pause, awaitedPause)
	}
	return pause
}

// resumeLocked ends the pause. It reports whether there was one.
func (r *repeated) resumeLocked(m *moment) bool {
	if r.resumes == 0 {
		return false
	}
	r.resumes = 0
	m.sync(r)
	return true
}

// hastenLocked sends the request that a pause puts off.
func (r *repeated) hastenLocked(m *moment) {
	if r.resumeLocked(m) {
		r.copyLocked(m)
	}
}

// copyLocked sends the request again, unless too many copies of it are on their way.
func (r *repeated) copyLocked(m *moment) {
	if !r.full() {
		r.sendLocked(m, new(command.Call), nil)
	}
}

// giveUpWaitingLocked ends the wait for the request, which itself goes on.
func (r *repeated) giveUpWaitingLocked(m *moment, cause error) {
	r.tell(because(Unavailable, cause))
	r.uncollideLocked(m)
}

// resend ends the pause: it is over, or Close waits for the answer.
func (r *repeated) resend() {
	e := r.entry
	m := e.moment()
	e.mu.Lock()
	defer e.unlock(&m)
	r.hastenLocked(&m)
	e.stepLocked(&m)
}

// Overdue is called by the executor when a reply takes too long: Unlock does not wait any longer, the next callers neither,
// and the request is sent over another connection.
func (r *repeated) Overdue(c *command.Call) {
	e := r.entry
	m := e.moment()
	e.mu.Lock()
	defer e.unlock(&m)
	if r.settled || !r.isCurrent(c) {
		return
	}
	e.engine.Stats.Troubles.Add(1)
	r.giveUpWaitingLocked(&m, command.ErrSilent)
	r.copyLocked(&m)
	e.stepLocked(&m)
}

// Stranded is called by the executor when the connection is dead: the request is sent over another
// one, for which Unlock still waits.
func (r *repeated) Stranded(c *command.Call) {
	e := r.entry
	m := e.moment()
	e.mu.Lock()
	defer e.unlock(&m)
	if !r.isCurrent(c) {
		return
	}
	r.strands(&c.Roomless)
	if !r.settled && !r.full() {
		e.engine.Stats.Troubles.Add(1)
		r.sendLocked(&m, new(command.Call), nil)
		e.stepLocked(&m)
	}
}

// settleLocked ends it.
func (r *repeated) settleLocked(m *moment, v *Verdict) {
	r.settled = true
	r.resumeLocked(m)
	r.answers.settle(v)
	r.uncollideLocked(m)
	if v.is(Unavailable) {
		m.order().close.denied = r.entry.engine.explain(r.name(), v)
	}
	m.order().close.more--
}

// sayGaveUpLocked has the log say so if it has ended without being confirmed.
func (r *repeated) sayGaveUpLocked(m *moment) {
	if r.settled && r.verdict.is(Unavailable) {
		m.then(releaseGaveUp{r.name(), r.entry.engine.explain(r.name(), r.verdict)})
	}
}

func (r *repeated) uncollideLocked(m *moment) {
	e, n := r.entry, r.colliding
	if n == 0 {
		return
	}
	r.colliding = 0
	e.releasing -= n
	e.gaveUpLocked(n)
	if e.places != nil && e.places.leaving == r {
		e.places.leaving = nil
		e.sendLeaversLocked(m)
	}
}
