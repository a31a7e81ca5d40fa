package engine

import (
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast/internal/command"
	"github.com/holdfast-go/holdfast/internal/protocol"
	"github.com/holdfast-go/holdfast/internal/validity"
	"github.com/holdfast-go/holdfast/internal/wire"
)

// try is one acquire request for a claim. A claim is requested again, with the same owner id, until it is granted
// or given up. So it does not matter which of its copies Redis executes, nor how often.
type try struct {
	call     command.Call
	hold     *hold
	n        uint64        // entry.tries when it was sent
	heard    uint64        // inbox.sessions then
	sent     time.Time     // when the executor took it
	tried    time.Duration // before that, by the request that it repeats over another connection
	stands   bool          // it asked for a place in the queue
	deaf     bool          // the process had no inbox when it was sent; else, if it stands, the inbox stays until it ends
	ended    bool          // Close does not wait for it any more; guarded by entry.mu
	roomless bool          // see copies; guarded by entry.mu
	room     [13]any       // for the arguments: they need no allocation of their own
}

// tryLocked asks Redis for the lock on behalf of w.
func (e *entry) tryLocked(m *moment, w *waiter) {
	if w == e.waiters.Front() {
		e.missed.take(missedLock)
		e.disarmLocked()
	}
	if b := e.bidOf(w); b != nil && b.claim.full() {
		// Replied comes for each, no later than go-redis gives up.
		e.refuseLocked(m, e.tries+1, Unavailable, m.silence())
		return
	}
	t := e.newTryLocked(m, w)
	t.call = command.Call{
		Script:   t.hold.kind.acquireScript(),
		Args:     e.acquireArgs(m, t),
		Handler:  t,
		Patience: t.patience(m),
		Trace:    w.Value.trace,
		Acks:     t.hold.cfg.Acks,
	}
	m.send(&t.call)
}

// newTryLocked makes a request for w's bid, which is made as well if there is none.
func (e *entry) newTryLocked(m *moment, w *waiter) *try {
	b := e.bidOf(w)
	var t *try
	if b == nil {
		b = e.newBidLocked(w)
		t = &b.first
	} else {
		t = new(try)
	}
	c := b.claim
	if !c.stray() {
		c.tokens = e.tokensWanted(c)
	}
	e.tries++
	t.hold, t.n, t.stands, t.sent = c, e.tries, !w.Value.once, m.now()
	if t.stands {
		t.deaf = !m.rely()
	} else {
		t.deaf = !m.hears()
	}
	t.heard = m.session()
	if b.stranded != 0 {
		t.tried, b.stranded = t.sent.Sub(e.engine.Epoch)-b.stranded, 0
	}
	c.flying++
	e.known.asked(t.sent.Sub(e.engine.Epoch))
	b.current = t
	m.order().close.more++
	return t
}

// acquireArgs leaves out what only fencing needs: each argument costs Redis about a
// quarter of a microsecond.
func (e *entry) acquireArgs(m *moment, t *try) []any {
	h := t.hold
	wait := h.cfg.waits[waitNot]
	if t.stands {
		switch {
		case h.phase == standing && t.deaf:
			wait = h.cfg.waits[waitAgainDeaf]
		case h.phase == standing:
			wait = h.cfg.waits[waitAgain]
		case t.deaf:
			wait = h.cfg.waits[waitDeaf]
		default:
			wait = h.cfg.waits[waitNew]
		}
	}
	args := append(h.withKeys(t.room[:], h.kind.acquireScript(), true), h.id(), h.cfg.ms, wait)
	if h.cfg.Fencing {
		args = append(args, h.tokens, m.tokenSeen(e))
	}
	return args
}

// maxTokens bounds the fencing tokens that are reserved with one grant.
const maxTokens = wire.TokensPerGrant

// tokensWanted is how many fencing tokens to reserve: one for each caller that waits,
// since the hold may be passed to them. Those not used are skipped.
func (e *entry) tokensWanted(c *hold) uint8 {
	switch {
	case !c.cfg.Fencing:
		return 0
	case e.engine.slice == 0, c.cfg.Fixed, c.kind == FairKind, c.kind == ReadKind:
		return 1
	}
	return uint8(min(e.waiters.Len(), maxTokens))
}

// Replied is called by the executor with the end of the request.
func (t *try) Replied(_ *command.Call, r command.Reply) {
	e := t.hold.entry
	m := e.moment()
	e.mu.Lock()
	t.repliedLocked(&m, r)
	e.stepLocked(&m)
	e.unlock(&m)
}

// repliedLocked handles the end of the request.
func (t *try) repliedLocked(m *moment, r command.Reply) {
	h := t.hold
	e := h.entry
	defer t.endLocked(m)
	e.answeredLocked(r)
	h.ends(&t.roomless)
	token, granted := r.Value.(int64)
	v, ok := t.verdict(r.Value)
	if r.Outcome == command.Answered && !granted && !ok {
		r.Outcome, r.Err = command.Unknown, Unexpected(r.Value)
	}
	h.doubt(r.Outcome)
	if !h.phase.claim() {
		return // a copy, or a message has granted it since, or it was given up with a tombstone
	}
	b := h.bid
	current := b.current == t
	var notice *wire.Notice
	if current {
		notice = b.notice
		b.current, b.notice = nil, nil
	}
	if granted || ok && v.Code == protocol.AcquireHeld && t.stands {
		m.order().wrote = true
	}
	if b.waiter == nil {
		if ok && v.Code == protocol.AcquireHeld && t.stands {
			h.phase = standing // for undoLocked to see
		}
		e.undoLeftLocked(m, h, r.Outcome == command.Answered && granted)
		return
	}
	switch {
	case r.Outcome == command.Answered && granted && h.cfg.Acks != nil && (r.AckErr != nil || r.Acked < h.cfg.Acks.Replicas):
		e.unackedLocked(m, h, r)
	case r.Outcome == command.Answered && granted:
		how := grantedAfterWait
		if t.n == b.waiter.Value.after+1 {
			how = grantedAtOnce
		}
		switch { // it may be a grant by a release, found by asking
		case notice != nil && notice.Granted:
			h.turn = uint8(min(notice.Turn, turnsInARow))
		case t.deaf && h.phase == standing:
			h.turn = turnsInARow // a process without an inbox cannot count them
		case h.kind == ReadKind && m.chance(turnsInARow) == 0:
			h.turn = turnsInARow // nor can a reader that has come in beside others, which does not know that
		}
		e.grantedLocked(m, h, r.Sent, h.cfg.TTL, uint64(token), how)
	case isUnsent(r):
		e.failLocked(m, Closed, nil)
	case r.Outcome.Final(), r.Outcome == command.Barred && e.barredForLongLocked(m, r.Err):
		e.hopelessLocked(m, t, Unavailable, fmt.Errorf("%s: %w", t.call.Script.Name(), r.Err))
	case r.Outcome != command.Answered:
		e.troubleLocked(m, t, current, r.Outcome, r.Err)
	case v.Code == protocol.AcquireHeld:
		e.heldByOtherLocked(m, t, v, notice)
	case v.Code == protocol.AcquireKind:
		e.hopelessLocked(m, t, WrongKind, v.Wrong)
	default: // protocol.AcquireBuried: only a claim that was given up has a tombstone
		e.endBidLocked(m, h)
		h.phase = over
		e.missed.add(missedLock)
	}
}

// verdict reads a reply that is not a token.
func (t *try) verdict(value any) (protocol.Verdict, bool) {
	if t.call.Script == protocol.MultiAcquire {
		r, ok := protocol.ParseRefusal(value)
		return r.Verdict, ok
	}
	return protocol.ParseVerdict(value)
}

// hopelessLocked fails all waiters, because another request would bring the same answer. If the answer may be
// about the counter of tokens, it fails only waiters that want tokens. The answer to a sweep may be about another
// of its locks, so it fails only the waiters that it was sent for. Later waiters send a request of their own.
func (e *entry) hopelessLocked(m *moment, t *try, f Fact, cause error) {
	e.known.untroubled()
	if f == Unavailable {
		e.engine.Stats.Troubles.Add(1)
	}
	e.missed.add(missedLock)
	if t.call.Script == protocol.MultiAcquire {
		e.refuseLocked(m, t.n, f, cause)
		return
	}
	for w := e.waiters.Front(); w != nil; {
		next := w.Next()
		if w.Value.h.Terms.Fencing == t.hold.cfg.Fencing {
			e.deliverLocked(m, w, outcome{verdict: because(f, cause)})
		}
		w = next
	}
}

// Unexpected is the error of an answer that no script gives: it comes from something in between.
func Unexpected(answer any) error {
	return fmt.Errorf("unexpected reply %s", command.LegibleText(fmt.Sprint(answer)))
}

// unackedLocked undoes a grant that too few replicas have acknowledged.
func (e *entry) unackedLocked(m *moment, h *hold, r command.Reply) {
	e.endBidLocked(m, h)
	cause := &Unacked{h.cfg.Acks.Replicas, r.Acked, r.AckErr}
	e.troubledLocked(cause)
	if command.IsFinal(r.AckErr) { // no WAIT, or no right to it: waiting would not help
		e.failLocked(m, Unavailable, cause)
	}
	e.refuseLocked(m, e.tries+1, Unavailable, cause)
	e.releaseLocked(m, h, nil)
	e.pauseLocked(m, r.Sent)
}

// heldByOtherLocked waits: for a grant, for a message, or for the time in which the
// holder's right ends by itself. A notice that came before this reply is a grant that
// came after this verdict.
func (e *entry) heldByOtherLocked(m *moment, t *try, v protocol.Verdict, notice *wire.Notice) {
	e.known.last = refusal
	b := t.hold.bid
	if t.stands {
		b.clock, b.before, b.foreign, b.lost = v.Clock, t.sent, v.Foreign, false
		if t.hold.phase == claimed {
			t.hold.phase = standing
			if e.kind == FairKind { // others ask for them often enough
				m.schedule(plan{t.hold, planRenew, t.sent, e.engine.patience, e.engine.patience})
			}
			if early := m.expect(t.hold); early != nil {
				notice = early
			}
		}
	}
	if v.State != protocol.StateCrowded {
		e.refuseLocked(m, t.n, NotAcquired, nil)
	}
	if notice != nil && (!notice.Granted || notice.Clock >= v.Clock) {
		e.noticedLocked(m, t.hold, *notice)
		return
	}
	if t.stands && (t.deaf || t.heard != m.session()) && m.hears() {
		// The inbox was subscribed since, or again: a grant in between was missed, and no other message follows.
		e.missed.add(missedPlaces | missedGrants)
		if v.State != protocol.StateOpen {
			e.missed.add(missedLock)
		}
	}
	if v.State == protocol.StateCrowded {
		e.missed.add(missedLock | missedPlaces)
		return
	}
	front := e.waiters.Front()
	if front == nil || t.hold.bid == nil || front != b.waiter {
		// A caller that asked once was the first; or it was not the first's request.
		if front != nil && e.bidOf(front) == nil {
			e.missed.add(missedLock)
		}
		return
	}
	if !t.stands {
		// Taken over from a caller that asked once: the one that waits has no place yet.
		e.missed.add(missedLock)
		return
	}
	if v.State == protocol.StateOpen {
		// It is the turn of Redisson, or of the first. Asking again at once, for what may have been
		// missed while a channel was subscribed, would end it: the script takes that for a poll.
		e.armLocked(m, alarmGiveWay, validity.Duration(v.TTL))
	}
	e.listening = v.Foreign
	if !e.alarm.yields() && e.alarm != alarmPause { // else another one follows in a moment
		e.armLocked(m, alarmPoll, e.pollAfter(m, validity.Duration(v.TTL)))
	}
}

// troubleLocked is for a request that brought no verdict.
func (e *entry) troubleLocked(m *moment, t *try, current bool, outcome command.Outcome, err error) {
	if !current {
		// Overdue before. Another copy may be on its way; if none is allowed any more,
		// this end of one is what the entry was waiting for.
		if t.hold.bid.current == nil {
			e.pauseLocked(m, t.sent)
		}
		return
	}
	e.troubledLocked(err)
	if e.known.trouble().requests == 1 && t.call.Script != protocol.Join && (outcome == command.Unknown || outcome == command.NotSent) && m.now().Sub(t.sent) < t.call.Patience/4 {
		// Most likely a connection that died in the pool. The same claim again, at once. Places are not
		// urgent, and while the first waiter is answered each request for some can be the first to fail.
		e.missed.add(missedLock | missedPlaces | missedGrants)
		return
	}
	e.refuseLocked(m, t.n, Unavailable, err)
	e.pauseLocked(m, t.sent)
}
