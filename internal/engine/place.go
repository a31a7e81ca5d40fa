package engine

import (
	"github.com/holdfast-go/holdfast/internal/command"
	"github.com/holdfast-go/holdfast/internal/protocol"
)

// Waiters of a fair lock stand in its queue in Redis, in the order of their calls. The
// executor's lanes may overtake each other, so that order is kept here: the first
// waiter asks for the lock, and those behind it join together, in one request at a
// time.

// places is what only the entry of a fair lock has. It is guarded by entry.mu.
type places struct {
	joining *join     // is putting waiters into the queue, or back into it; nil: none
	keeping int       // requests that ask whether places are still there
	lost    bool      // a waiter may have lost its place, see bid.lost
	awaited int       // how many of those requests are to end before the lost ones come back
	left    int32     // bids whose waiters have left, and whose requests are under way
	leaving *repeated // is taking waiters out of it; nil: none
	leavers []*hold   // are to leave it next; counted in entry.releasing
	private *hold     // the claim whose private channel of Redisson's is subscribed; nil: none
}

// firstPlaceLocked is the bid of the first waiter of a fair lock; nil: there is none.
func (e *entry) firstPlaceLocked() *bid {
	if front := e.waiters.Front(); e.places != nil && front != nil {
		return front.Value.bid
	}
	return nil
}

// privateLocked is the claim whose private channel of Redisson's the entry wants to hear; nil: none.
func (e *entry) privateLocked() *hold {
	if b := e.firstPlaceLocked(); b != nil && e.listening {
		return b.claim
	}
	return nil
}

// join is one request to put waiters into the queue, or back into it. It does not change once it is sent.
type join struct {
	e     *entry
	back  bool   // they have stood there before, and return to the front
	tries []*try // of the waiters that the reply is a verdict for
	call  command.Call
}

// joinBatch is how many waiters one request carries; Redis is busy with it for about a
// microsecond and a half per waiter.
const joinBatch = 250

// joinLocked asks for places for the waiters that have none.
func (e *entry) joinLocked(m *moment) {
	if e.places.keeping == 0 && e.missed.take(missedGrants) {
		e.keepAllLocked(m)
	}
	if e.places.joining == nil {
		e.comeBackLocked(m)
	}
	if e.places.joining != nil {
		return
	}
	j := &join{e: e}
	more := e.gatherLocked(m, j, e.firstWithoutPlaceLocked())
	if more {
		e.missed.add(missedPlaces) // for the next request
	}
	if len(j.tries) > 0 {
		j.sendLocked(m)
	}
}

// firstWithoutPlaceLocked returns the first waiter that may have no place in Redis; nil: none.
func (e *entry) firstWithoutPlaceLocked() *waiter {
	w := e.waiters.Back()
	switch {
	case w == nil:
		return nil
	case e.alarm != alarmPause && e.missed.take(missedPlaces):
		return e.waiters.Front()
	case w.Value.bid != nil:
		return nil
	}
	for w.Prev() != nil && w.Prev().Value.bid == nil {
		w = w.Prev()
	}
	return w
}

// gatherLocked fills j with waiters from w on that have no place, joinBatch at most, and reports whether some are
// left for the next request. The first waiter and TryLocks have requests of their own.
func (e *entry) gatherLocked(m *moment, j *join, w *waiter) (more bool) {
	for next := w; w != nil && len(j.tries) < joinBatch; w = next {
		b, waiting := w.Value.bid, e.waiters.Len()
		next = w.Next()
		switch {
		case b.standing() || b.asking():
			continue
		case w.Value.once:
			if e.clearLocked(w) { // it would meet what is being given up
				if e.tryLocked(m, w); e.waiters.Len() < waiting {
					return true // no more copies: these and perhaps others have their verdict
				}
			}
			continue
		case w == e.waiters.Front():
			if e.alarm != alarmPause { // else the pause ends first
				e.tryLocked(m, w)
			}
			return next != nil // its reply comes here again
		}
		if len(j.tries) == 0 && !followsLocked(w) {
			return true // likewise
		}
		if b != nil && b.claim.full() {
			continue
		}
		j.tries = append(j.tries, e.newTryLocked(m, w))
	}
	return w != nil
}

// followsLocked reports whether all waiters before w have their places. The nearest one shows that: no other gets
// its place later.
func followsLocked(w *waiter) bool {
	w = w.Prev()
	for w != nil && w.Value.once {
		w = w.Prev()
	}
	return w == nil || w.Value.bid.standing()
}

// sendLocked sends the request for all waiters of j.
func (j *join) sendLocked(m *moment) {
	e, k, place := j.e, j.e.keys, protocol.NewPlace
	if j.back {
		place = protocol.SamePlace
	}
	args := make([]any, 0, 6+len(j.tries))
	args = append(args, k.Lock, k.Queue, k.Deadlines, k.Tombstones, e.engine.stand(place, !m.hears()), e.engine.owners)
	for _, t := range j.tries {
		args = append(args, t.hold.tail())
	}
	j.call = command.Call{
		Script:   protocol.Join,
		Args:     protocol.Join.Args(4, args...),
		Handler:  j,
		Patience: m.patienceFor(j.tries[0].hold.cfg.TTL),
	}
	for _, t := range j.tries {
		t.call.Script, t.call.Patience = protocol.Join, j.call.Patience
	}
	e.places.joining = j
	m.send(&j.call)
}

// Replied is called by the executor with the end of the request.
func (j *join) Replied(_ *command.Call, reply command.Reply) {
	e := j.e
	m := e.moment()
	e.mu.Lock()
	if e.places.joining == j {
		e.places.joining = nil
	}
	for _, t := range j.tries {
		t.repliedLocked(&m, reply)
	}
	e.stepLocked(&m)
	e.unlock(&m)
}

// Overdue is called by the executor when the reply takes too long.
func (j *join) Overdue(*command.Call) {
	e := j.e
	m := e.moment()
	e.mu.Lock()
	defer e.unlock(&m)
	if e.places.joining == j {
		e.places.joining = nil
	}
	for _, t := range j.tries {
		t.overdueLocked(&m)
	}
	e.stepLocked(&m)
}

// Stranded is called by the executor when the connection is dead.
func (j *join) Stranded(*command.Call) {
	e := j.e
	m := e.moment()
	e.mu.Lock()
	defer e.unlock(&m)
	if e.places.joining == j {
		e.places.joining = nil
	}
	for _, t := range j.tries {
		t.strandedLocked(&m)
	}
	e.stepLocked(&m)
}
