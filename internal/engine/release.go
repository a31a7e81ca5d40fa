package engine

import (
	"context"
	"time"

	"github.com/holdfast-go/holdfast/internal/command"
	"github.com/holdfast-go/holdfast/internal/protocol"
	"github.com/holdfast-go/holdfast/internal/retry"
	"github.com/holdfast-go/holdfast/internal/validity"
	"github.com/holdfast-go/holdfast/internal/wire"
)

// release gives up a hold in Redis, or a claim that may have been granted, or several claims of a fair lock, of
// which hold is one (leave.go). It goes on until Redis has answered or the lock has expired, even if no caller
// waits for it. The script checks the owner id, so it can be sent as often as needed.
type release struct {
	entry *entry
	room  [13]any      // for args
	call  command.Call // the first request

	// The following is guarded by entry.mu.

	hold      *hold
	lease     *Lease     // whose end began it, or one of those; nil: none did
	downgrade *downgrade // what it is until then; nil: nothing else
	script    *command.Script
	args      []any
	barred    time.Time // when Redis first did not let the client; zero: it did not say so
	trouble   error     // why the latest request brought no answer; nil: none has
	patient   time.Time // until then Unlock waits
	until     time.Time // by then the lock, or the place in the queue, is gone by itself
	pauses    *retry.Pauses
	timer     *time.Timer // ends the pause before the next request; nil: there is none
	colliding int32       // how many claims or holds it is counted as in entry.releasing
	held      bool        // of a hold: if Redis does not know it, that is a loss
	owed      bool        // of a hold that ended early, as the log has said
	lapsed    bool        // it began after the deadline, by the monotonic or by the wall clock
	settled   bool        // nothing more is to be sent
	copies                // of the request with these args
	answers               // for the calls of Unlock that wait
}

// burial is for how long a tombstone refuses late copies of an acquire request. A
// copy can lie in a socket's buffer for as long as the kernel retransmits; one that
// comes later still takes the lock for one TTL, unrenewed.
const burial = time.Minute

// startReleaseLocked begins the release of h, whose phase is over. It stood in the queue
// in Redis if queued.
func (e *entry) startReleaseLocked(h *hold, queued bool, trace context.Context) *release {
	now := time.Now()
	r := &release{entry: e, patient: now.Add(e.engine.patienceFor(h.cfg.TTL)), lapsed: !validity.Valid(now, h.deadline)}
	r.beginLocked(h, queued, now)
	e.engine.begin()
	r.sendLocked(&r.call, trace)
	return r
}

// beginLocked makes r the release of h, of which nothing has been sent. New requests wait for
// it as long as Unlock does.
func (r *release) beginLocked(h *hold, queued bool, now time.Time) {
	r.prepareLocked(h, queued, now)
	if !r.told {
		r.colliding = 1
		r.entry.releasing++
	}
	r.entry.known.asked(now.Sub(r.entry.engine.Epoch))
}

// prepareLocked says what is sent, and until when.
func (r *release) prepareLocked(h *hold, queued bool, now time.Time) {
	left := validity.TTL(max(0, h.deadline.Sub(now))) // more than the lease's, if it was extended
	r.hold, r.flying = h, 0
	room := r.room[:]
	if r.args != nil {
		room = nil // those of the downgrade are there, and a copy of it may be being sent
	}
	if rest := h.stay(now); rest > 0 {
		r.script, r.args = h.stayArgs(room, rest)
	} else {
		r.script, r.args = h.kind.releaseScript(), h.releaseArgs(room, queued)
	}
	if queued || h.stray() {
		left = max(left, r.entry.engine.patience) // so long Redis keeps a place in the queue
	}
	r.until = now.Add(max(h.cfg.TTL, claimTTL, left) + time.Second)
	if h.extended { // perhaps by more than is known, if Extend was not answered: until this is
		r.until = r.until.Add(validity.MaxTTL)
	}
	if h.stray() {
		r.until = r.until.Add(burial)
	}
}

// releaseArgs leaves out what an undisturbed release does not need.
func (h *hold) releaseArgs(room []any, queued bool) []any {
	givenUp := h.stray() || queued
	args := append(h.withKeys(room, h.kind.releaseScript(), givenUp), h.id(), h.entry.engine.Publish, h.keys.Channel, h.offer())
	switch {
	case h.stray():
		args = append(args, burial.Milliseconds())
	case givenUp:
		args = append(args, 0)
	}
	return args
}

// name is what the log calls the lock. The lease is set before a reply can come.
func (r *release) name() string {
	if r.lease != nil {
		return r.lease.name
	}
	return r.entry.name
}

// restartLocked asks again after the release was given up.
func (r *release) restartLocked() {
	r.settled, r.verdict, r.pauses, r.barred = false, nil, nil, time.Time{}
	r.entry.engine.begin()
	if !r.full() {
		r.sendLocked(new(command.Call), nil)
	}
}

func (r *release) sendLocked(call *command.Call, trace context.Context) {
	e := r.entry
	*call = command.Call{
		Script:   r.script,
		Args:     r.args,
		Handler:  r,
		Patience: e.engine.patienceFor(r.hold.cfg.TTL),
		Trace:    trace,
	}
	if !r.told {
		call.Patience = time.Until(r.patient) // Unlock's, over all copies
	}
	r.flying++
	if !e.engine.Executor.Submit(call) {
		r.flying--
		r.settleLocked(because(Unavailable, Closed))
	}
}

// Replied is called by the executor with the end of a request.
func (r *release) Replied(c *command.Call, reply command.Reply) {
	e := r.entry
	lost, reason := []Ended(nil), lostStolen
	noticed := lossReason("") // by nothing but this reply
	var gaveUp error          // why it ends without being confirmed
	defer func() {
		e.announceLoss(lost, reason)
		if noticed != "" {
			e.countLoss(noticed)
			e.engine.Journal.Lost(r.name(), string(noticed)) // a deferred Unlock drops its error
		}
		if gaveUp != nil && e.engine.life.Err() == nil { // else Close has said so
			e.engine.Journal.GaveUp(r.name(), gaveUp)
		}
	}()
	message, _ := reply.Value.(string)
	notice, granted := wire.ParseNotice(message)
	var next *hold // a waiter of this process, even if the release was settled before
	if granted {
		next = e.engine.inbox.claimOf(notice)
	}
	if next != nil && next.entry != e { // of a mutex and a fair lock of one name
		defer next.entry.noticed(next, notice)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	current := r.isCurrent(c)
	if current {
		r.flying--
	}
	e.answeredLocked(reply)
	if next != nil && next.entry == e {
		lost = e.noticedLocked(next, notice)
	}
	if r.settled || !current {
		if next != nil && next.entry == e {
			e.stepLocked()
		}
		return
	}
	n, ok := reply.Value.(int64)
	switch {
	case reply.Outcome == command.Answered && ok && r.downgrade != nil:
		lost, reason = r.convertedLocked(reply)
	case reply.Outcome == command.Answered && ok && n >= 0:
		e.giveWayLocked(n)
		r.settleLocked(nil)
	case reply.Outcome == command.Answered && (granted || ok && n == protocol.ReleaseHandedOver):
		e.handedOverLocked()
		r.settleLocked(nil)
	case reply.Outcome == command.Answered && ok && n == protocol.ReleaseCrowded:
		r.handOnLocked()
	case reply.Outcome == command.Answered && ok:
		if r.stray() {
			e.missed.add(missedLock) // a copy that ran may have granted it here, as only its reply says
		}
		verdict := r.goneLocked(n)
		if r.held && verdict.is(LeaseLost) {
			noticed = verdict.Reason
		}
		r.settleLocked(verdict)
	default:
		r.troubledLocked(reply)
	}
	if r.settled && !r.owed && r.verdict.is(Unavailable) {
		gaveUp = e.engine.explain(r.name(), r.verdict)
	}
	e.stepLocked()
}

// troubledLocked is for a request without an answer.
func (r *release) troubledLocked(reply command.Reply) {
	r.entry.engine.Stats.Troubles.Add(1)
	r.trouble = reply.Err
	if reply.Outcome == command.Answered {
		reply.Outcome, r.trouble = command.Unknown, Unexpected(reply.Value)
	}
	r.entry.engine.troubled(r.trouble)
	r.doubt(reply.Outcome)
	if reply.Outcome.Final() || reply.Outcome == command.Barred && r.barredForLongLocked() {
		if r.downgrade == nil {
			r.settleLocked(because(Unavailable, r.trouble))
			return
		}
		// Redis keeps the write side: asking again until that ends says how the read side is.
		r.giveUpWaitingLocked(r.trouble)
	}
	r.againLocked(r.trouble)
}

// barredForLongLocked is that of an entry, for a release.
func (r *release) barredForLongLocked() bool {
	now := time.Now()
	if r.barred.IsZero() {
		r.barred = now
	}
	return now.Sub(r.barred) >= r.entry.engine.Readmission
}

// isCurrent reports whether c was sent for what r asks for now: not for a downgrade that has become a release since, nor
// for the release of a lock whose queue is being cleared since. A late copy of either must not end what goes on.
func (r *release) isCurrent(c *command.Call) bool { return &c.Args[0] == &r.args[0] }

// handOnLocked is for a lock that has been released and is free, while more dead waiters stand in front of its
// queue than one request removes. The next requests go on until a waiter has the lock. Unlock does not wait for
// them.
func (r *release) handOnLocked() {
	r.tell(nil)
	r.held, r.unclear = false, true // that the owner id is gone is no loss
	if r.script != protocol.Leave {
		r.args, r.flying = r.hold.releaseArgs(nil, true), 0
	}
	r.sendLocked(new(command.Call), nil)
}

// goneLocked is the verdict when the owner id was not in the lock any more. If a copy of this request may have
// run, it was that copy: the lease was valid when Unlock was called, and only this release, or a deletion by hand,
// ends a lock within its window. If the window has ended since, as the TTL does while Redis cannot be reached,
// that was the end of the lock, and the lease did what it had promised. In all other cases the lease had been lost
// unnoticed, including a host that slept beyond the deadline before the call, which timers do not notice.
//
// Rejected alternative: a key that remembers each release, as Redisson's unlock latch. It costs one more write and
// a live key for seconds per unlock, to tell "released" from "deleted by hand at the very moment of a lost reply".
func (r *release) goneLocked(reply int64) *Verdict {
	if !r.lapsed && (r.stray() || !validity.Valid(time.Now(), r.hold.deadline)) {
		return nil
	}
	reason := lostDeleted
	if reply == protocol.ReleaseStolen {
		reason = lostStolen
	}
	return lostBy(reason)
}

// againLocked sends the request again after a pause, until the lock has expired.
func (r *release) againLocked(cause error) {
	now := time.Now()
	if now.After(r.until) {
		r.settleLocked(because(Unavailable, cause))
		return
	}
	pause := r.pauseLocked()
	if left := r.patient.Sub(now); !r.told && left < pause {
		// Unlock has waited as long as it may, over all copies.
		r.giveUpWaitingLocked(cause)
	}
	if r.timer == nil { // else an earlier copy has failed, and that pause is over sooner
		r.timer = time.AfterFunc(pause, r.resend)
		r.entry.engine.pausing(r)
	}
}

// awaitedPause is the longest pause of a release while an Unlock or Close waits for it: a few fit into the time that it
// waits.
const awaitedPause = 50 * time.Millisecond

// pauseLocked returns the next pause.
func (r *release) pauseLocked() time.Duration {
	if r.pauses == nil {
		r.pauses = retry.New()
	}
	pause := r.pauses.NextBackOff()
	if len(r.later) > 0 || r.entry.engine.closing() {
		pause = min(pause, awaitedPause)
	}
	return pause
}

// resumeLocked ends the pause. It reports whether there was one.
func (r *release) resumeLocked() bool {
	if r.timer == nil {
		return false
	}
	r.timer.Stop()
	r.timer = nil
	r.entry.engine.resumed(r)
	return true
}

// hastenLocked sends the request that a pause puts off, since an Unlock or Close waits for the answer.
func (r *release) hastenLocked() {
	if r.resumeLocked() && !r.full() {
		r.sendLocked(new(command.Call), nil)
	}
}

// giveUpWaitingLocked ends the wait for the release, which itself goes on.
func (r *release) giveUpWaitingLocked(cause error) {
	r.tell(because(Unavailable, cause))
	r.uncollideLocked()
}

func (r *release) resend() {
	e := r.entry
	e.mu.Lock()
	defer e.mu.Unlock()
	if r.resumeLocked() && !r.full() {
		r.sendLocked(new(command.Call), nil)
		e.stepLocked()
	}
}

// Overdue is called by the executor when a reply takes too long: Unlock does not
// wait any longer, the next callers neither, and the request is sent over another
// connection.
func (r *release) Overdue(c *command.Call) {
	e := r.entry
	e.mu.Lock()
	defer e.mu.Unlock()
	if r.settled || !r.isCurrent(c) {
		return
	}
	e.engine.Stats.Troubles.Add(1)
	r.giveUpWaitingLocked(command.ErrSilent)
	if !r.full() {
		r.sendLocked(new(command.Call), nil)
	}
	e.stepLocked()
}

// Stranded is called by the executor when the connection is dead: the request is sent over another
// one, for which Unlock still waits.
func (r *release) Stranded(c *command.Call) {
	e := r.entry
	e.mu.Lock()
	defer e.mu.Unlock()
	if !r.settled && r.isCurrent(c) && !r.full() {
		e.engine.Stats.Troubles.Add(1)
		r.sendLocked(new(command.Call), nil)
		e.stepLocked()
	}
}

// settleLocked ends the release.
func (r *release) settleLocked(v *Verdict) {
	r.settled = true
	r.resumeLocked()
	r.answers.settle(v)
	r.uncollideLocked()
	if v.is(Unavailable) {
		r.entry.engine.gaveUp(r.entry.engine.explain(r.name(), v))
	}
	r.entry.engine.end()
}

func (r *release) uncollideLocked() {
	e, n := r.entry, r.colliding
	if n == 0 {
		return
	}
	r.colliding = 0
	e.releasing -= n
	e.gaveUpLocked(n)
	if e.places != nil && e.places.leaving == r {
		e.places.leaving = nil
		e.sendLeaversLocked()
	}
}

// giveWay is how long a process that released a lock while others listened stays out of their way: longer than a
// message and a request take, so that they come first, and short enough not to matter if they did not want it.
const giveWay = 2 * time.Millisecond

// redissonsTurn is how long a lock that was left open for Redisson stays so: a JVM takes longer than Holdfast, and
// it happens once in 16 grants.
const redissonsTurn = 5 * time.Millisecond

// giveWayLocked decides when to ask again after a release that n clients heard of.
func (e *entry) giveWayLocked(n int64) {
	if n > 0 && e.waiters.Len() > 0 && n > e.ownListeners() {
		e.missed.take(missedLock)
		e.armLocked(alarmGiveWay, giveWay)
	}
}
