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
// The zero value is in no queue, and no caller listens to it. A waiter can be parked again once it was told.
type Waiter[V, T any] struct {
	Value V

	next, prev *Waiter[V, T]
	queue      *Queue[V, T]  // nil once removed
	ready      chan struct{} // has room for one value; nil: no caller listens
	outcome    T             // set before ready is sent to
}

// New returns a waiter whose caller listens to Ready.
func New[V, T any]() *Waiter[V, T] { return &Waiter[V, T]{ready: make(chan struct{}, 1)} }

// Ready is sent one value when the outcome is there.
func (w *Waiter[V, T]) Ready() <-chan struct{} { return w.ready }

// Take returns what w was told, which it forgets. It may be called after Ready was sent to.
func (w *Waiter[V, T]) Take() T {
	told, none := w.outcome, *new(T)
	w.outcome = none
	return told
}

// Parked reports whether w is still in its queue.
func (w *Waiter[V, T]) Parked() bool { return w.queue != nil }

// Queue is a FIFO of waiters. The zero value is empty and ready for use.
type Queue[V, T any] struct {
	head, tail *Waiter[V, T]
	len        int
}

// Push parks w behind all others.
func (q *Queue[V, T]) Push(w *Waiter[V, T]) {
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

// Tell gives w, which was removed, its outcome. From then on w belongs to its caller, who may park it again.
func (w *Waiter[V, T]) Tell(outcome T) {
	w.outcome = outcome
	if w.ready != nil {
		w.ready <- struct{}{}
	}
}

// Remove takes w out, which is then told its outcome, or leaves. It reports false if w was not parked here: it was
// told, or has left, before.
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
