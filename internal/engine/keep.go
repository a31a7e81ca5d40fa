package engine

import (
	"cmp"
	"slices"

	"github.com/holdfast-go/holdfast/internal/command"
	"github.com/holdfast-go/holdfast/internal/protocol"
)

// keepBatch is how many places one request keeps. Where the queue has been deleted each of them reads all of
// it, so they are few.
const keepBatch = 500

// keepRequest is one request for waiters of a fair lock to keep their places in its
// queue. Each process refreshes its own, keepBatch per request, three times in the
// patience after which a silent one is dropped; the first of them asks for the lock
// itself now and then, which keeps its place as well.
type keepRequest struct {
	e      *entry
	claims []*hold
	call   command.Call
	ended  bool // nothing waits for its answer; guarded by entry.mu
}

// keepAllLocked finds out which waiters of a fair lock have lost their place, or have
// been granted the lock unheard.
func (e *entry) keepAllLocked(m *moment) {
	var claims []*hold
	for w := e.waiters.Front(); w != nil; w = w.Next() {
		if b := w.Value.bid; b.standing() {
			claims = append(claims, b.claim)
		}
	}
	for some := range slices.Chunk(claims, keepBatch) {
		m.send(e.newKeepLocked(m, some))
	}
}

func (e *entry) newKeep(claims []*hold) *command.Call {
	m := e.moment()
	e.mu.Lock()
	defer e.unlock(&m)
	return e.newKeepLocked(&m, claims)
}

func (e *entry) newKeepLocked(m *moment, claims []*hold) *command.Call {
	eng := e.engine
	e.places.keeping++
	args := make([]any, 0, 5+len(claims))
	args = append(args, e.keys.Lock, e.keys.Queue, e.keys.Deadlines, eng.stand(protocol.SamePlace, !m.hears()), eng.owners)
	for _, h := range claims {
		args = append(args, h.tail())
	}
	r := &keepRequest{e: e, claims: claims}
	r.call = command.Call{
		Script:   protocol.Keep,
		Args:     protocol.Keep.Args(3, args...),
		Handler:  r,
		Patience: m.askPatience(),
		Lapses:   true, // the scheduler asks again
	}
	return &r.call
}

// Replied is called by the executor with the end of the request.
func (r *keepRequest) Replied(_ *command.Call, reply command.Reply) {
	e, eng := r.e, r.e.engine
	codes, ok := reply.Value.([]any)
	answered := reply.Outcome == command.Answered && ok && len(codes) == len(r.claims)
	m := e.moment()
	e.mu.Lock()
	defer e.unlock(&m)
	for i, h := range r.claims {
		switch {
		case !h.phase.claim():
			// Granted meanwhile: what the schedule has now is the hold.
		case !answered:
			m.schedule(plan{hold: h, what: planRetry})
		default:
			m.schedule(plan{h, planKept, reply.Sent, eng.patience, eng.patience})
			e.toldOfPlaceLocked(&m, h, codes[i])
		}
	}
	r.endLocked(&m)
}

// endLocked goes on with what waited for the answer.
func (r *keepRequest) endLocked(m *moment) {
	if !r.ended {
		r.ended = true
		p := r.e.places
		p.keeping--
		p.awaited = max(p.awaited-1, 0)
	}
	r.e.joinLocked(m)
}

// Overdue is called by the executor when the reply takes too long: the scheduler hands the claims out again by itself.
func (r *keepRequest) Overdue(*command.Call) {
	m := r.e.moment()
	r.e.mu.Lock()
	defer r.e.unlock(&m)
	r.endLocked(&m)
}

// Stranded is called by the executor when the connection is dead.
func (r *keepRequest) Stranded(*command.Call) {
	e := r.e
	m := e.moment()
	e.mu.Lock()
	defer e.unlock(&m)
	e.missed.add(missedGrants)
	r.endLocked(&m)
}

// toldOfPlaceLocked looks what has become of the place of h. The first waiter, or one that has been granted the lock without
// hearing of it, asks for the lock: that brings it the grant, or its place. The others return together.
func (e *entry) toldOfPlaceLocked(m *moment, h *hold, code any) {
	b := h.bid
	switch {
	case code == int64(protocol.KeepDone) || b.waiter == nil || b.current != nil:
	case code == int64(protocol.KeepGranted) || b.waiter == e.waiters.Front():
		e.tryLocked(m, b.waiter)
	default:
		p := e.places
		if !p.lost {
			p.awaited = p.keeping
		}
		b.lost, p.lost = true, true
	}
}

// comeBackLocked returns waiters to the queue that have lost their places there: their process was silent for too
// long, waiters of Redisson pushed them out, or the queue was deleted. Each request reads the whole queue, so they
// return together, after the answers to the requests that were under way. Those with the highest numbers return
// first, since each request puts its waiters in front.
func (e *entry) comeBackLocked(m *moment) {
	p := e.places
	if !p.lost || p.awaited > 0 || e.alarm == alarmPause {
		return
	}
	p.lost = false
	j := &join{e: e, back: true}
	for w := e.waiters.Back(); w != nil && len(j.tries) < joinBatch; w = w.Prev() {
		b := w.Value.bid
		if b == nil || !b.lost {
			continue
		}
		p.lost = true // until it has a verdict
		if b.current == nil && !b.claim.full() {
			j.tries = append(j.tries, e.newTryLocked(m, w))
		}
	}
	if len(j.tries) > 0 {
		slices.SortFunc(j.tries, func(a, b *try) int { return cmp.Compare(a.hold.number, b.hold.number) })
		j.sendLocked(m)
	}
}
