package engine

import "github.com/holdfast-go/holdfast/internal/lock"

// waiter is a caller that waits: what the lock knows of it, and where its caller gets the outcome.
type waiter struct {
	lock.Waiter
	h      *Lock
	entry  *entry
	label  *string             // of WithLabel; nil: none
	ready  chan struct{}       // has room for one value, which says that the outcome is there; nil: LockAsync
	async  func(*Lease, error) // LockAsync: takes the outcome; else nil
	unhook func() bool         // LockAsync: stops listening to the context, which may be code of the user; nil: nothing listens
}

// newWaiter returns a waiter for a caller of h. One that is not async calls outcomeOf in the end.
func (h *Lock) newWaiter(e *entry, async func(*Lease, error)) *waiter {
	var w *waiter
	if async == nil {
		w, _ = h.engine.parked.Get().(*waiter)
	}
	if w == nil {
		w = new(waiter)
		w.Shell = w
		if async == nil {
			w.ready = make(chan struct{}, 1)
		}
	}
	w.h, w.entry, w.async = h, e, async
	w.By = h.by()
	return w
}

// outcomeOf returns the outcome of w, and keeps w for another caller. Its own caller has received from ready, or w is not in
// the queue: no other goroutine knows it then.
func (eng *Engine) outcomeOf(w *waiter) (*Lease, *Verdict) {
	l, v := (*Lease)(w.Lease), w.Verdict
	if w.async == nil {
		w.Reset()
		w.h, w.entry, w.label = nil, nil, nil
		eng.parked.Put(w)
	}
	return l, v
}

// settleLocked is called when the outcome is there, before a later event of the entry.
func (w *waiter) settleLocked(m *lock.Moment) {
	if w.Waited {
		w.entry.waitedLocked(m.Age())
	}
	if l := w.Lease; l != nil {
		(*Lease)(l).setLabelLocked(w.label)
		w.h.Class.granted(l.Kind(), l.Mode())
	}
}

// tell gives the caller of LockAsync its outcome. The waiter has left the queue under entry.mu, which it does
// once, so no later event has another. If the lease ends before its caller gets it, the caller gets it all the same.
func (w *waiter) tell() {
	if w.unhook != nil {
		w.unhook()
	}
	w.async((*Lease)(w.Lease), w.entry.engine.explain(w.Name, w.Verdict))
}
