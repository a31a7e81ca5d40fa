package engine

import (
	"context"
	"time"

	"github.com/holdfast-go/holdfast/internal/command"
	"github.com/holdfast-go/holdfast/internal/protocol"
	"github.com/holdfast-go/holdfast/internal/validity"
	"github.com/holdfast-go/holdfast/internal/wire"
)

// release gives up a hold in Redis, or a claim that may have been granted, or several claims of a fair lock, of
// which hold is one (leave.go).
type release struct {
	repeated

	// The following is guarded by entry.mu.

	held bool // of a hold: if Redis does not know it, that is a loss
	owed bool // of a hold that ended early, as the log has said
}

// burial is for how long a tombstone refuses late copies of an acquire request. A
// copy can lie in a socket's buffer for as long as the kernel retransmits; one that
// comes later still takes the lock for one TTL, unrenewed.
const burial = time.Minute

// startReleaseLocked begins the release of h, whose phase is over. It stood in the queue
// in Redis if queued.
func (e *entry) startReleaseLocked(m *moment, h *hold, queued bool, trace context.Context) *release {
	r := newReleaseLocked(m, h, queued)
	r.startLocked(m, trace)
	return r
}

// newReleaseLocked says what is sent, and until when.
func newReleaseLocked(m *moment, h *hold, queued bool) *release {
	r, now := new(release), m.now()
	r.isFor(m, h, r)
	r.until = h.goneBy(queued, now)
	if rest := h.stay(now); rest > 0 {
		r.script, r.args = h.stayArgs(r.room[:], rest)
	} else {
		r.script, r.args = h.kind.releaseScript(), h.releaseArgs(r.room[:], queued)
	}
	return r
}

// startLocked sends the first request. New requests for the lock wait for it as long as Unlock does.
func (r *release) startLocked(m *moment, trace context.Context) {
	e := r.entry
	if !r.told {
		r.colliding = 1
		e.releasing++
	}
	e.known.asked(m.age())
	m.order().close.more++
	r.sendLocked(m, &r.call, trace)
}

// goneBy is when h, which is given up now, is gone from Redis by itself, and late copies of its acquire as well.
func (h *hold) goneBy(queued bool, now time.Time) time.Time {
	left := validity.TTL(max(0, h.deadline.Sub(now))) // more than the lease's, if it was extended
	if queued || h.stray() {
		left = max(left, h.entry.engine.patience) // so long Redis keeps a place in the queue
	}
	until := now.Add(max(h.cfg.TTL, claimTTL, left) + time.Second)
	if h.extended { // perhaps by more than is known, if Extend was not answered: until this is
		until = until.Add(validity.MaxTTL)
	}
	if h.stray() {
		until = until.Add(burial)
	}
	return until
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

// restartLocked asks again after the release was given up.
func (r *release) restartLocked(m *moment) {
	r.settled, r.verdict, r.pauses, r.barred = false, nil, nil, 0
	m.order().close.more++
	r.copyLocked(m)
}

// Replied is called by the executor with the end of a request.
func (r *release) Replied(c *command.Call, reply command.Reply) {
	e := r.entry
	message, _ := reply.Value.(string)
	notice, granted := wire.ParseNotice(message)
	m := e.moment()
	var next *hold // a waiter of this process, even if the release was settled before
	if granted {
		next = m.claimOf(notice)
	}
	if next != nil && next.entry != e { // of a mutex and a fair lock of one name
		m.then(grantForOther{next, notice})
		next = nil
	}
	e.mu.Lock()
	defer e.unlock(&m)
	counts := r.endsWith(&m, c, reply)
	e.answeredLocked(reply)
	if next != nil {
		e.noticedLocked(&m, next, notice)
	}
	if !counts {
		if next != nil {
			e.stepLocked(&m)
		}
		return
	}
	n, ok := reply.Value.(int64)
	switch {
	case reply.Outcome == command.Answered && ok && n >= 0:
		e.giveWayLocked(&m, n)
		r.settleLocked(&m, nil)
	case reply.Outcome == command.Answered && (granted || ok && n == protocol.ReleaseHandedOver):
		e.handedOverLocked(&m)
		r.settleLocked(&m, nil)
	case reply.Outcome == command.Answered && ok && n == protocol.ReleaseCrowded:
		r.handOnLocked(&m)
	case reply.Outcome == command.Answered && ok:
		if r.stray() {
			e.missed.add(missedLock) // a copy that ran may have granted it here, as only its reply says
		}
		verdict := r.goneLocked(&m, n)
		if r.held && verdict.is(LeaseLost) {
			m.then(holdLost{name: r.name(), reason: verdict.Reason}) // a deferred Unlock drops its error
		}
		r.settleLocked(&m, verdict)
	case r.troubledLocked(&m, reply):
		r.settleLocked(&m, because(Unavailable, r.trouble))
	default:
		r.againLocked(&m)
	}
	if !r.owed {
		r.sayGaveUpLocked(&m)
	}
	e.stepLocked(&m)
}

// handOnLocked is for a lock that has been released and is free, while more dead waiters stand in front of its
// queue than one request removes. The next requests go on until a waiter has the lock. Unlock does not wait for
// them.
func (r *release) handOnLocked(m *moment) {
	r.tell(nil)
	r.held, r.unclear = false, true // that the owner id is gone is no loss
	if r.script != protocol.Leave {
		r.args, r.flying, r.dead = r.hold.releaseArgs(nil, true), 0, 0
	}
	r.sendLocked(m, new(command.Call), nil)
}

// goneLocked is the verdict when the owner id was not in the lock any more. If a copy of this request may have
// run, it was that copy: the lease was valid when Unlock was called, and only this release, or a deletion by hand,
// ends a lock within its window. If the window has ended since, as the TTL does while Redis cannot be reached,
// that was the end of the lock, and the lease did what it had promised. In all other cases the lease had been lost
// unnoticed, including a host that slept beyond the deadline before the call, which timers do not notice.
//
// Rejected alternative: a key that remembers each release, as Redisson's unlock latch. It costs one more write and
// a live key for seconds per unlock, to tell "released" from "deleted by hand at the very moment of a lost reply".
func (r *release) goneLocked(m *moment, reply int64) *Verdict {
	if !r.lapsed && (r.stray() || !validity.Valid(m.now(), r.hold.deadline)) {
		return nil
	}
	reason := lostDeleted
	if reply == protocol.ReleaseStolen {
		reason = lostStolen
	}
	return lostBy(reason)
}

// giveWay is how long a process that released a lock while others listened stays out of their way: longer than a
// message and a request take, so that they come first, and short enough not to matter if they did not want it.
const giveWay = 2 * time.Millisecond

// redissonsTurn is how long a lock that was left open for Redisson stays so: a JVM takes longer than Holdfast, and
// it happens once in 16 grants.
const redissonsTurn = 5 * time.Millisecond

// giveWayLocked decides when to ask again after a release that n clients heard of.
func (e *entry) giveWayLocked(m *moment, n int64) {
	if n > 0 && e.waiters.Len() > 0 && n > m.ownListeners(e) {
		e.missed.take(missedLock)
		e.armLocked(m, alarmGiveWay, giveWay)
	}
}
