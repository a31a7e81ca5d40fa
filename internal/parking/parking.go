// Package parking keeps the FIFO of callers that wait for one lock in this
// process.
//
// A Queue and its waiters are guarded by the mutex of the owner of the queue: that
// is the point. Granting to a waiter and cancelling it are both a removal from the
// queue, and a waiter can be removed once; so whichever happens first, under that
// one mutex, wins, and the loser is told. Nothing blocks here: a caller parks on
// its own channel, on which it is told once that its outcome is there.
package parking

// Waiter is one caller's place: what it asks for, a V, and the outcome it gets, a T.
// The zero value is in no queue.
type Waiter[V, T any] struct {
	Value V

	next, prev *Waiter[V, T]
	queue      *Queue[V, T] // nil once removed
	ready      chan struct{}
	outcome    T // set before ready is sent to
}

// Ready returns the channel that w was parked with.
func (w *Waiter[V, T]) Ready() chan struct{} { return w.ready }

// Outcome returns what was delivered. It may be called after Ready has told of it.
func (w *Waiter[V, T]) Outcome() T { return w.outcome }

// Parked reports whether w is still in its queue.
func (w *Waiter[V, T]) Parked() bool { return w.queue != nil }

// Queue is a FIFO of waiters. The zero value is empty and ready for use.
type Queue[V, T any] struct {
	head, tail *Waiter[V, T]
	len        int
}

// Push parks w behind all others. ready, which has room for one value, is sent one when
// the outcome is there; nil, where no caller listens. A waiter is parked once.
func (q *Queue[V, T]) Push(w *Waiter[V, T], ready chan struct{}) {
	w.ready = ready
	w.queue = q
	w.prev = q.tail
	if q.tail == nil {
		q.head = w
	} else {
		q.tail.next = w
	}
	q.tail = w
	q.len++
}

// Front returns the waiter that has waited longest, nil if there is none.
func (q *Queue[V, T]) Front() *Waiter[V, T] { return q.head }

// Back returns the waiter that came last, nil if there is none.
func (q *Queue[V, T]) Back() *Waiter[V, T] { return q.tail }

// Next returns the waiter behind w, nil if w is the last.
func (w *Waiter[V, T]) Next() *Waiter[V, T] { return w.next }

// Prev returns the waiter in front of w, nil if w is the first.
func (w *Waiter[V, T]) Prev() *Waiter[V, T] { return w.prev }

// Len returns how many wait.
func (q *Queue[V, T]) Len() int { return q.len }

// Deliver removes w and gives it its outcome. It reports false, and delivers
// nothing, if w was removed before: the caller then still owns what it offered.
func (q *Queue[V, T]) Deliver(w *Waiter[V, T], outcome T) bool {
	if !q.Remove(w) {
		return false
	}
	w.outcome = outcome
	if w.ready != nil {
		w.ready <- struct{}{}
	}
	return true
}

// Remove takes w out without an outcome. It reports false if w was not parked
// here, in which case its outcome has been delivered or it left earlier.
func (q *Queue[V, T]) Remove(w *Waiter[V, T]) bool {
	if w.queue != q {
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
	w.next, w.prev, w.queue = nil, nil, nil
	q.len--
	return true
}
