package lock

// What follows gets the places of a fair lock. place.go keeps them, gets back those that are lost, and gives them up.

// places is what a lock has whose waiters have bids of their own.
type places struct {
	joining *Join     // is putting waiters into the queue, or back into it; nil: none
	keeping int       // requests that ask whether places are still there
	awaited int       // how many of those requests are to end before the lost ones come back
	leaving *Repeated // is taking waiters out of it; nil: none
	leavers []*Hold   // are to leave it next; counted in Lock.releasing
}

// Waiters of a fair lock stand in its queue in Redis, in the order of their calls. The
// executor's lanes may overtake each other, so that order is kept here: the first
// waiter asks for the lock, and those behind it join together, in one request at a
// time.

// Join is one request to put waiters into the queue, or back into it. It does not change once it is sent.
type Join struct {
	Lock    *Lock
	Place   Place  // new ones, or, for those who have stood there before, the same
	Session uint64 // in which the process hears its inbox; 0: in none
	Tries   []*Try // of the waiters that the reply is a verdict for
}

// joinBatch is how many waiters one request carries; Redis is busy with it for about a
// microsecond and a half per waiter.
const joinBatch = 250

// join asks for places for the waiters that have none.
func (lk *Lock) join(m *Moment) {
	if lk.places.keeping == 0 && lk.missed.take(missedGrants) {
		lk.keepAll(m)
	}
	if lk.places.joining == nil {
		lk.comeBack(m)
	}
	if lk.places.joining != nil {
		return
	}
	j := &Join{Lock: lk, Place: NewPlace}
	more := lk.gather(m, j, lk.firstWithoutPlace())
	if more {
		lk.missed.add(missedPlaces) // for the next request
	}
	if len(j.Tries) > 0 {
		j.send(m)
	}
}

// firstWithoutPlace returns the first waiter that may have no place in Redis; nil: none.
func (lk *Lock) firstWithoutPlace() *Waiter {
	w := lk.waiters.tail
	switch {
	case w == nil:
		return nil
	case lk.alarm != alarmPause && lk.missed.take(missedPlaces):
		return lk.waiters.head
	case w.bid != nil:
		return nil
	}
	for w.prev != nil && w.prev.bid == nil {
		w = w.prev
	}
	return w
}

// gather fills j with waiters from w on that have no place, joinBatch at most, and reports whether some are
// left for the next request. The first waiter and TryLocks have requests of their own.
func (lk *Lock) gather(m *Moment, j *Join, w *Waiter) (more bool) {
	for next := w; w != nil && len(j.Tries) < joinBatch; w = next {
		b, waiting := w.bid, lk.waiters.len
		next = w.next
		switch {
		case b.standing() || b.asking():
			continue
		case w.Once:
			if lk.mayAsk(w) { // it would meet what is being given up
				if lk.try(m, w); lk.waiters.len < waiting {
					return true // no more copies: these and perhaps others have their verdict
				}
			}
			continue
		case w == lk.waiters.head:
			if lk.alarm != alarmPause { // else the pause ends first
				lk.try(m, w)
			}
			return next != nil // its reply comes here again
		}
		if len(j.Tries) == 0 && !follows(w) {
			return true // likewise
		}
		if b != nil && b.claim.full() {
			continue
		}
		j.Tries = append(j.Tries, lk.newTry(m, w, b))
	}
	return w != nil
}

// follows reports whether all waiters before w have their places. The nearest one shows that: no other gets
// its place later.
func follows(w *Waiter) bool {
	w = w.prev
	for w != nil && w.Once {
		w = w.prev
	}
	return w == nil || w.bid.standing()
}

// send sends the request for all waiters of j.
func (j *Join) send(m *Moment) {
	j.Session = m.session()
	patience := m.patienceFor(j.Tries[0].Hold.Terms.TTL)
	for _, t := range j.Tries {
		t.carrier, t.Patience = inJoin, patience
	}
	j.Lock.places.joining = j
	m.send(j.Lock, Send{Request: j, Patience: patience})
}

// each is an event of all its tries. Another request may follow.
func (j *Join) each(m *Moment, event func(t *Try)) {
	if p := j.Lock.places; p.joining == j {
		p.joining = nil
	}
	for _, t := range j.Tries {
		event(t)
	}
	j.Lock.step(m)
}

func (j *Join) Replied(m *Moment, _ *Copy, r *Reply) {
	j.each(m, func(t *Try) { t.replied(m, r) })
}

func (j *Join) Overdue(m *Moment, _ *Copy)  { j.each(m, func(t *Try) { t.overdue(m) }) }
func (j *Join) Stranded(m *Moment, _ *Copy) { j.each(m, func(t *Try) { t.stranded(m) }) }
