package holdfast

import (
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast/internal/command"
	"github.com/holdfast-go/holdfast/internal/validity"
)

// try is one acquire request for a claim. A claim is asked for again, with the same
// owner id, until it is granted or given up, so it does not matter which of its
// copies Redis executes, nor how often.
type try struct {
	call command.Call
	hold *hold
	n    uint64    // entry.tries when it was sent
	sent time.Time // when it was handed over
}

// maxCopies bounds the unanswered copies of one request. Each goes to a connection
// of its own, because the ones before may be dead.
const maxCopies = 4

var (
	errSilent  = errors.New("no answer")
	errTooLate = errors.New("the answer came when the lease was over")
)

// tryLocked asks Redis for the lock.
func (e *entry) tryLocked() {
	e.ask, e.yielding = false, false
	e.stopTimer()
	front := &e.waiters.Front().Value
	c := e.claim
	if c != nil && !c.stray() && *c.cfg != *front.h.cfg {
		c = nil // refused for certain and not what is wanted now
	}
	if c != nil && c.unanswered >= maxCopies {
		// Replied comes for each, at the latest when go-redis gives up.
		e.refuseLocked(e.tries+1, ErrUnavailable, errSilent)
		return
	}
	if c == nil {
		c = newHold(e, front.h)
		e.claim = c
	}
	if !c.stray() {
		c.tokens = e.tokensWanted(c.cfg)
	}
	t := &front.first
	if t.hold != nil {
		t = new(try)
	}
	e.tries++
	t.hold, t.n, t.sent = c, e.tries, time.Now()
	t.call = command.Call{
		Script:   mutexAcquire,
		Args:     c.acquireArgs(),
		Handler:  t,
		Patience: validity.Patience(c.cfg.ttl),
		Trace:    front.trace,
	}
	c.unanswered++
	e.current = t
	e.m.begin()
	if !e.m.executor.Submit(&t.call) {
		// The manager has closed and its executor stopped: nothing was sent.
		c.unanswered--
		e.current, e.claim = nil, nil
		e.m.end()
		e.failLocked(ErrClosed, nil)
		e.stepLocked()
	}
}

// acquireArgs leaves out what only fencing needs: each argument costs Redis about a
// quarter of a microsecond.
func (h *hold) acquireArgs() []any {
	if !h.cfg.fencing {
		return mutexAcquire.Args(2, h.keys.Lock, h.keys.Tombstones, h.owner, h.cfg.ms)
	}
	return mutexAcquire.Args(3, h.keys.Lock, h.keys.Tombstones, h.keys.Token,
		h.owner, h.cfg.ms, h.tokens, h.entry.m.tokens.seen(h.entry.name()))
}

// maxTokens bounds the fencing tokens that are reserved with one grant.
const maxTokens = 128

// tokensWanted is how many fencing tokens to reserve: one for each caller that waits,
// since the hold may be passed to them. Those not used are skipped.
func (e *entry) tokensWanted(cfg *lockConfig) uint32 {
	switch {
	case !cfg.fencing:
		return 0
	case e.m.slice == 0 || cfg.fixed:
		return 1
	}
	return uint32(min(e.waiters.Len(), maxTokens))
}

// Replied is called by the executor with the end of the request.
func (t *try) Replied(_ *command.Call, r command.Reply) {
	h := t.hold
	e := h.entry
	e.mu.Lock()
	defer e.mu.Unlock()
	defer e.m.end()

	h.unanswered--
	verdict := e.current == t
	if verdict {
		e.current = nil
	}
	if r.Outcome == command.Unknown {
		h.unclear = true
	}
	if h.phase != claimed {
		return // a copy; the hold's release leaves a tombstone for it
	}
	token, granted := r.Value.(int64)
	code, n, ok := pair(r.Value)
	switch {
	case r.Outcome == command.Answered && granted:
		e.grantedLocked(h, r.Sent, uint64(token))
	case r.Outcome == command.Denied, r.Outcome == command.Answered && !ok:
		e.answeredLocked()
		e.failLocked(ErrUnavailable, fmt.Errorf("%s: %w", mutexAcquire.Name(), deniedBy(r)))
	case r.Outcome != command.Answered:
		e.troubleLocked(t, verdict, r.Outcome, r.Err)
	case code == acquireHeld:
		e.heldByOtherLocked(t, time.Duration(n)*time.Millisecond)
	case code == acquireKind:
		e.answeredLocked()
		e.failLocked(ErrWrongKind, nil)
	default: // acquireBuried: only a claim that was given up has a tombstone
		e.claim = nil
		h.phase = over
		e.ask = true
	}
	e.stepLocked()
}

func deniedBy(r command.Reply) error {
	if r.Err != nil {
		return r.Err
	}
	return fmt.Errorf("unexpected reply %v", r.Value)
}

// answeredLocked records that Redis is there.
func (e *entry) answeredLocked() {
	e.trouble, e.failures, e.pauses = nil, 0, nil
}

// grantedLocked makes the claim the process's hold.
func (e *entry) grantedLocked(h *hold, sent time.Time, lastToken uint64) {
	e.answeredLocked()
	e.claim, e.current = nil, nil
	now := time.Now()
	if !validity.Valid(now, validity.Deadline(sent, h.cfg.ttl)) {
		// The server may be about to expire it. Not a grant: S2 of the invariants.
		e.trouble = errTooLate
		e.refuseLocked(e.tries+1, ErrUnavailable, errTooLate)
		e.releaseLocked(h, nil)
		e.wakeAfter(e.pauseLocked())
		return
	}
	e.refused = false
	h.phase = held
	h.tenure = now.Sub(e.m.epoch)
	if h.cfg.fencing {
		h.token = lastToken - uint64(h.tokens)
		e.m.tokens.saw(e.name(), lastToken)
	}
	e.hold = h
	h.deadline = e.m.scheduler.Add(&h.item, sent, h.cfg.ttl, !h.cfg.fixed)
	if !h.cfg.fixed {
		e.m.warm.Do(func() { e.m.executor.Warm(e.m.life) })
	}
	e.serveLocked(h)
}

// heldByOtherLocked waits for a message, or for ttl, in which the holder's right ends
// by itself.
func (e *entry) heldByOtherLocked(t *try, ttl time.Duration) {
	e.answeredLocked()
	e.refused = true
	e.refuseLocked(t.n, ErrNotAcquired, nil)
	if e.waiters.Len() == 0 {
		return
	}
	if !e.listening {
		e.listening = true
		if e.m.subscriber.add(e.channel(), e) {
			// The channel was still subscribed, but nobody listened until now.
			e.ask = true
		}
	}
	e.wakeAfter(e.pollAfter(ttl))
}

// troubleLocked is for a request that brought no verdict.
func (e *entry) troubleLocked(t *try, verdict bool, outcome command.Outcome, err error) {
	if !verdict {
		// Overdue before. Another copy may be on its way; if none is allowed any more,
		// this end of one is what the entry was waiting for.
		if e.current == nil {
			e.wakeAfter(e.pauseLocked())
		}
		return
	}
	e.trouble, e.refused = err, false
	e.failures++
	e.m.stats.troubles.Add(1)
	if e.failures == 1 && outcome != command.Refused && time.Since(t.sent) < t.call.Patience/4 {
		// Most likely a connection that died in the pool. The same claim again, at once.
		e.ask = true
		return
	}
	e.refuseLocked(t.n, ErrUnavailable, err)
	e.wakeAfter(e.pauseLocked())
}

// Overdue is called by the executor when the reply takes too long. Callers that ask
// once are told so; for the others the same claim is asked for over another
// connection, since this one may be dead.
func (t *try) Overdue(*command.Call) {
	e := t.hold.entry
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.current != t {
		return
	}
	e.current = nil
	e.trouble, e.refused = errSilent, false
	e.failures++
	e.m.stats.troubles.Add(1)
	e.refuseLocked(t.n, ErrUnavailable, errSilent)
	e.ask = true
	e.stepLocked()
}
