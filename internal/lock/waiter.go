package lock

import "time"

// By is what a caller asks with.
type By struct {
	*Handle
	Kind Kind
}

// Handle is a lock as its callers know it.
type Handle struct {
	Name  string // as given: what errors, logs and spans say
	Class any    // of the name, for metrics; carried only
	Terms *Terms // the options
}

// Waiter is a caller that waits. Granting to it and cancelling it are both a removal from the queue, and a waiter is removed
// once; so whichever happens first, under the one mutex of the lock, wins, and the loser is told. The zero value is in no
// queue. A waiter can be parked again once it was told.
type Waiter struct {
	By
	Once  bool          // TryLock: refused by the first verdict
	Shell any           // the shell's
	Trace any           // of its caller; carried only
	Came  time.Duration // when it came, after Settings.Epoch

	parked bool   // in the queue
	behind int32  // fair, once: how many of the releases that were under way when it came have not ended
	after  uint64 // requests numbered above it were sent after the caller had come
	bid    *Bid   // fair: what was requested for it; nil: nothing. Of other locks, Lock.bid stands for all

	next, prev *Waiter // in the queue

	// The outcome, once it was told.
	Lease   *Lease
	Verdict *Verdict // why there is no lease
	Waited  bool     // another owner stood in its way, here or elsewhere
	Next    *Waiter  // was told after it, by the same event: in Moment.Told
}

// Reset has w, which is in no queue, forget its caller and its outcome.
func (w *Waiter) Reset() {
	w.By, w.Trace, w.Once = By{}, nil, false
	w.Lease, w.Verdict, w.Waited, w.Next = nil, nil, false, nil
}

// Parked reports whether w is still in its queue.
func (w *Waiter) Parked() bool { return w.parked }

// queue is a FIFO of waiters. The zero value is empty.
type queue struct {
	head, tail *Waiter
	len        int
}

// push parks w behind all others.
func (q *queue) push(w *Waiter) {
	w.parked = true
	w.prev = q.tail
	if q.tail == nil {
		q.head = w
	} else {
		q.tail.next = w
	}
	q.tail = w
	q.len++
}

// remove takes w out, which is then told its outcome, or leaves. It reports false if w was not parked: it was
// told, or has left, before.
func (q *queue) remove(w *Waiter) bool {
	if !w.parked {
		return false
	}
	if w.prev == nil {
		q.head = w.next
	} else {
		w.prev.next = w.next
	}
	if w.next == nil {
		q.tail = w.prev
	} else {
		w.next.prev = w.prev
	}
	w.next, w.prev, w.parked = nil, nil, false
	q.len--
	return true
}

// deliver ends the wait of a caller, who owns w from then on.
func (lk *Lock) deliver(m *Moment, w *Waiter, l *Lease, v *Verdict) {
	if !lk.waiters.remove(w) {
		return
	}
	lk.leaveBid(m, w)
	w.Lease, w.Verdict = l, v
	m.tell(w)
}

// refuse ends the wait of TryLocks that were waiting when the request numbered by was sent.
func (lk *Lock) refuse(m *Moment, by uint64, f Fact, cause error) {
	if lk.onces > 0 {
		lk.failThose(m, func(w *Waiter) bool { return w.Once && w.after < by }, f, cause)
	}
}

// turnDown ends the wait of TryLocks that want as much as t did, or more, and were waiting when it was sent: others have it.
func (lk *Lock) turnDown(m *Moment, t *Try) {
	if lk.onces > 0 {
		most := t.Hold.Terms.Permits
		lk.failThose(m, func(w *Waiter) bool { return w.Once && w.after < t.n && w.Terms.Permits >= most }, NotAcquired, nil)
	}
}

// fail ends the wait of all callers.
func (lk *Lock) fail(m *Moment, f Fact, cause error) {
	lk.failThose(m, func(*Waiter) bool { return true }, f, cause)
}

// failThose ends the wait of some.
func (lk *Lock) failThose(m *Moment, are func(w *Waiter) bool, f Fact, cause error) {
	for w := lk.waiters.head; w != nil; {
		next := w.next
		if are(w) {
			lk.deliver(m, w, nil, Because(f, cause))
		}
		w = next
	}
}

// Enter is the event that a caller comes. If w is not parked after it, its outcome is there. No request will bring anything if
// shut is why; nil: some may.
func (lk *Lock) Enter(m *Moment, w *Waiter, shut error) (l *Lease, v *Verdict, parked bool) {
	if lk.life == lifeClosed {
		return nil, Because(Closed), false
	}
	if shut != nil {
		return nil, Because(Unavailable, shut), false
	}
	idle := lk.Lingering()
	if idle != nil && lk.waiters.len == 0 {
		if l := lk.takeUp(m, idle, &w.By); l != nil {
			return l, nil, false
		}
	}
	if lk.waiters.len == 0 && lk.hold == nil && !lk.shared.none() {
		if l := lk.enterBeside(m, w); l != nil {
			return l, nil, false
		}
	}
	if idle != nil {
		lk.giveUp(m, idle, nil) // this caller cannot use it
	}
	if lk.alarm == alarmLinger {
		lk.disarm() // a caller waits now
	}
	if w.Once && lk.inTheWay(w.Kind, m.Now()) {
		return nil, Because(NotAcquired), false
	}
	switch {
	case lk.hold != nil && lk.hold.leases != nil:
		w.Came = max(m.roughly(), lk.hold.leases.since) // it came after that lease
	case lk.hold == nil && lk.waiters.len == 0:
		w.Came = m.Age()
		lk.latest.since = w.Came // what was before is nothing to this caller
	default:
		w.Came = m.roughly()
	}
	if lk.waiters.len > 0 || !lk.admits(w.Kind) {
		w.Waited = true
	}
	lk.park(w)
	lk.tellWatched(m, w)
	if w.Once || lk.waiters.len == 1 && (lk.absence == nil || !lk.stepAside(m)) {
		lk.missed.add(missedLock)
	}
	lk.step(m)
	return nil, nil, true
}

// tellWatched is called when w waits for what the process holds. A TryLock does not wait for it, nor does a reader for readers.
func (lk *Lock) tellWatched(m *Moment, w *Waiter) {
	if w.Once {
		return
	}
	if h := lk.hold; h != nil && h.watch == watched {
		h.tellWanted(m)
	}
	for _, h := range lk.shared.all() {
		if h.watch == watched && !(kinds[h.Kind].company == joint && kinds[w.Kind].company == joint) {
			h.tellWanted(m)
		}
	}
}

// park puts a caller behind all others.
func (lk *Lock) park(w *Waiter) {
	w.after, w.behind = lk.tries, lk.releasing
	lk.waiters.push(w)
	if w.Once {
		lk.onces++
	}
}

// IsIdle reports whether a caller that wants several locks at a time can have this one taken together with others.
func (lk *Lock) IsIdle() bool {
	return lk.life != lifeClosed && lk.waiters.len == 0 && lk.hold == nil && lk.releasing == 0
}

// EnterWith is Enter for a caller that wants several locks at a time, with the first answer: to one request, of which the shell
// gives this lock its answer.
func (lk *Lock) EnterWith(m *Moment, w *Waiter) *Try {
	w.Once, w.Came = true, m.Age()
	lk.park(w)
	t := lk.newTry(m, w, nil)
	t.carrier, t.Patience = inSweep, m.acquirePatience(w.Terms, true)
	return t
}

// Leave is the event that the context of w's caller has ended, for these causes. It reports false if w has left the queue
// before: then its outcome counts, unless that is a lease, which the caller gives back. v is what the caller learns.
func (lk *Lock) Leave(m *Moment, causes []error, w *Waiter) (v *Verdict, left bool) {
	other := lk.otherInTheWay(w)
	v = lk.noVerdict(m, causes, w)
	if !lk.waiters.remove(w) {
		return v, false
	}
	if other { // else Redis was silent, and no owner stood in the way
		w.Waited = true
	}
	lk.leaveBid(m, w)
	lk.step(m)
	return v, true
}

// Expel is Leave for a caller that is told of it, unless it was told before.
func (lk *Lock) Expel(m *Moment, causes []error, w *Waiter) {
	if v, left := lk.Leave(m, causes, w); left {
		w.Verdict = v
		m.tell(w)
	}
}
