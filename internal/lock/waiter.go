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

	stood  bool   // a caller of this process held the lock or waited for it when it came
	parked bool   // in the queue
	behind int32  // fair, once: how many of the releases that were under way when it came have not ended
	after  uint64 // requests numbered above it were sent after the caller had come
	bid    *Bid   // fair: what was requested for it; nil: nothing. Of other locks, Lock.bid stands for all

	next, prev *Waiter // in the queue; next also in the list of those told

	// The outcome, once it was told.
	Lease   *Lease
	Verdict *Verdict // why there is no lease
	Waited  bool     // another owner stood in its way
}

// Reset has w, which is in no queue, forget its caller and its outcome.
func (w *Waiter) Reset() {
	w.By, w.Trace, w.Once, w.next = By{}, nil, false, nil
	w.Lease, w.Verdict, w.Waited = nil, nil, false
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
	lk.left(m, w)
	w.Lease, w.Verdict = l, v
	m.tell(w)
}

// refuse ends the wait of TryLocks that were waiting when the request numbered by was sent.
func (lk *Lock) refuse(m *Moment, by uint64, f Fact, cause error) {
	for w := lk.waiters.head; w != nil && lk.onces > 0; {
		next := w.next
		if w.Once && w.after < by {
			lk.deliver(m, w, nil, Because(f, cause))
		}
		w = next
	}
}

// fail ends the wait of all callers.
func (lk *Lock) fail(m *Moment, f Fact, cause error) {
	for w := lk.waiters.head; w != nil; w = lk.waiters.head {
		lk.deliver(m, w, nil, Because(f, cause))
	}
}

// waited notes that another owner stood in the way of w, whose wait ends. A caller that asks once does not wait for it.
func (w *Waiter) waited() { w.Waited = !w.Once }
