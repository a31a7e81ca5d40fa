package holdfast

import (
	"slices"

	"github.com/holdfast-go/holdfast/internal/command"
	"github.com/holdfast-go/holdfast/internal/validity"
)

// Waiters of a fair lock stand in its queue in Redis, in the order of their calls. The
// executor's lanes may overtake each other, so that order is kept here: the first
// waiter asks for the lock, and those behind it join together, in one request at a
// time.

// places is what only the entry of a fair lock has. It is guarded by entry.mu.
type places struct {
	joining *join    // is putting waiters into the queue; nil: none
	leaving *release // is taking waiters out of it; nil: none
	leavers []*hold  // are to leave it next; counted in entry.releasing
	private *hold    // the claim whose private channel of Redisson's is heard; nil: none
}

// listenLocked hears the private channel of first, and no other; nil for none.
func (p *places) listenLocked(e *entry, first *hold) {
	if p.private == first {
		return
	}
	if p.private != nil {
		e.m.subscriber.remove(p.private.fairChannel(), e)
	}
	if p.private = first; first != nil {
		e.m.subscriber.add(first.fairChannel(), e)
	}
}

// join is one request to put waiters into the queue. It does not change once it is sent.
type join struct {
	e     *entry
	tries []*try // of the waiters, whom the reply is a verdict for
	call  command.Call
}

// joinBatch is how many waiters one request carries; Redis is busy with it for about a
// microsecond and a half per waiter.
const joinBatch = 250

// joinLocked asks for places for the waiters that have none.
func (e *entry) joinLocked() {
	if e.unheard {
		e.unheard = false
		e.keepAllLocked()
	}
	if e.places.joining != nil {
		return
	}
	j := &join{e: e}
	more := e.gatherLocked(j, e.firstWithoutPlaceLocked())
	e.strayed = e.strayed || more // in the next request
	if len(j.tries) > 0 {
		j.sendLocked()
	}
}

// firstWithoutPlaceLocked returns the first waiter that may have no place in Redis; nil: none.
func (e *entry) firstWithoutPlaceLocked() *waiter {
	w := e.waiters.Back()
	switch {
	case w == nil:
		return nil
	case e.strayed && !e.pausing:
		e.strayed = false
		return e.waiters.Front()
	case w.Value.claim != nil:
		return nil
	}
	for w.Prev() != nil && w.Prev().Value.claim == nil {
		w = w.Prev()
	}
	return w
}

// gatherLocked adds those to j, from w on, who are to get a place now, and reports whether there
// are more. Who is first, and who does not wait, asks by itself.
func (e *entry) gatherLocked(j *join, w *waiter) (more bool) {
	for ; w != nil && len(j.tries) < joinBatch; w = w.Next() {
		r := &w.Value
		switch {
		case r.queued || r.current != nil:
			continue
		case r.once:
			if e.clearLocked(w) { // it would meet what is being given up
				e.tryLocked(w)
			}
			continue
		case w == e.waiters.Front():
			if !e.pausing { // else the pause ends first
				e.tryLocked(w)
			}
			return w.Next() != nil // its reply comes here again
		}
		if len(j.tries) == 0 && !followsLocked(w) {
			return true // likewise
		}
		if r.claim != nil && r.claim.unanswered >= maxCopies {
			continue
		}
		j.tries = append(j.tries, e.newTryLocked(w))
	}
	return w != nil
}

// followsLocked reports whether those who wait before w all have their places. The nearest tells:
// nobody gets one before it.
func followsLocked(w *waiter) bool {
	w = w.Prev()
	for w != nil && w.Value.once {
		w = w.Prev()
	}
	return w == nil || w.Value.queued
}

// sendLocked sends the request for all whom j is for.
func (j *join) sendLocked() {
	e, k := j.e, j.e.keys
	args := make([]any, 0, 6+len(j.tries))
	args = append(args, k.Lock, k.Queue, k.Deadlines, k.Tombstones, e.m.patienceNow(), e.m.owners)
	for _, t := range j.tries {
		args = append(args, t.hold.tail(fairKind))
	}
	j.call = command.Call{
		Script:   joinScript,
		Args:     joinScript.Args(4, args...),
		Handler:  j,
		Patience: e.m.patienceFor(j.tries[0].hold.cfg.ttl),
	}
	for _, t := range j.tries {
		t.call.Script, t.call.Patience = joinScript, j.call.Patience
	}
	e.places.joining = j
	if !e.m.executor.Submit(&j.call) {
		e.places.joining = nil
		for _, t := range j.tries {
			t.neverSentLocked()
		}
		e.failLocked(ErrClosed, nil)
	}
}

// Replied is called by the executor with the end of the request.
func (j *join) Replied(_ *command.Call, reply command.Reply) {
	e := j.e
	var lost []ended
	e.mu.Lock()
	if e.places.joining == j {
		e.places.joining = nil
	}
	for _, t := range j.tries {
		lost = append(lost, t.repliedLocked(reply)...)
	}
	e.stepLocked()
	e.mu.Unlock()
	e.announceLoss(lost, LostStolen)
}

// Overdue is called by the executor when the reply takes too long.
func (j *join) Overdue(*command.Call) {
	e := j.e
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.places.joining == j {
		e.places.joining = nil
	}
	for _, t := range j.tries {
		t.overdueLocked()
	}
	e.stepLocked()
}

// Stranded is called by the executor when the connection is dead.
func (j *join) Stranded(*command.Call) {
	e := j.e
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.places.joining == j {
		e.places.joining = nil
	}
	for _, t := range j.tries {
		t.strandedLocked()
	}
	e.stepLocked()
}

// patienceNow is for how long Redis is to keep a place, as the scripts want it.
func (m *Manager) patienceNow() float64 {
	patience := float64(validity.Milliseconds(m.patience))
	if !m.inbox.live() {
		patience += deafMark
	}
	return patience
}

// keepRequest is one request for waiters of a fair lock to keep their places in its
// queue. Each process refreshes its own, a hundred per request, three times in the
// patience after which a silent one is dropped; the first of them asks for the lock
// itself now and then, which keeps its place as well.
type keepRequest struct {
	e      *entry
	claims []*hold
	call   command.Call
}

// keepAllLocked finds out which waiters of a fair lock have lost their place, or have
// been granted the lock unheard.
func (e *entry) keepAllLocked() {
	var claims []*hold
	for w := e.waiters.Front(); w != nil; w = w.Next() {
		if w.Value.queued {
			claims = append(claims, w.Value.claim)
		}
	}
	for some := range slices.Chunk(claims, renewBatch) {
		e.m.executor.Submit(e.newKeep(some))
	}
}

func (e *entry) newKeep(claims []*hold) *command.Call {
	m := e.m
	args := make([]any, 0, 5+len(claims))
	args = append(args, e.keys.Lock, e.keys.Queue, e.keys.Deadlines, m.patienceNow(), m.owners)
	for _, h := range claims {
		args = append(args, h.tail(fairKind))
	}
	r := &keepRequest{e: e, claims: claims}
	r.call = command.Call{
		Script:   keepScript,
		Args:     keepScript.Args(3, args...),
		Handler:  r,
		Patience: m.askPatience(),
		Lapses:   true, // the scheduler asks again
	}
	return &r.call
}

// Replied is called by the executor with the end of the request.
func (r *keepRequest) Replied(_ *command.Call, reply command.Reply) {
	e, m := r.e, r.e.m
	codes, ok := reply.Value.([]any)
	answered := reply.Outcome == command.Answered && ok && len(codes) == len(r.claims)
	e.mu.Lock()
	defer e.mu.Unlock()
	for i, h := range r.claims {
		switch {
		case h.phase != claimed:
			// Granted meanwhile: what the schedule has now is the hold.
		case !answered:
			m.scheduler.Retry(&h.item)
		default:
			m.scheduler.Confirm(&h.item, reply.Sent, m.patience, m.patience)
			if codes[i] != int64(keepDone) {
				e.seekLocked(h)
			}
		}
	}
}

// Overdue does nothing: the scheduler hands the claims out again by itself.
func (r *keepRequest) Overdue(*command.Call) {}

// Stranded is called by the executor when the connection is dead.
func (r *keepRequest) Stranded(*command.Call) {
	e := r.e
	e.mu.Lock()
	defer e.mu.Unlock()
	e.keepAllLocked()
}

// seekLocked asks for the lock for a claim that has no place any more: it has been granted
// and the message was lost, or its process was silent for too long, or waiters of
// Redisson pushed it out; asking brings it the grant or a place at the front.
func (e *entry) seekLocked(h *hold) {
	if w := h.waiter; w.Parked() && w.Value.current == nil {
		e.tryLocked(w)
	}
}
