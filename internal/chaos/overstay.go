package chaos

import (
	"context"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast"
)

// overstay takes a lease that ends by itself, and unlocks too late. If it is a fixed one, it may ask
// for more time before.
func (w *worker) overstay(t target) {
	if w.calm.Load() {
		return
	}
	ctx, cancel := context.WithTimeout(w.stop, ttl)
	defer cancel()
	opts := []holdfast.LockOption{holdfast.WithFixedLease(ttl), holdfast.WithLinger(0)}
	if w.rng.IntN(2) == 0 {
		t.limit, opts = ttl, nil
	}
	h := w.acquire(ctx, Lock, t, 0, opts...)
	if h == nil {
		return
	}
	if w.calm.Load() { // since it began to wait
		w.release(h)
		return
	}
	var asking sync.WaitGroup
	if t.limit == 0 && w.rng.IntN(2) == 0 {
		asking.Go(func() { // beside listen, which is to hear the end at once
			if w.pause(ttl); !w.calm.Load() {
				w.extend(h, ttl)
			}
		})
	}
	w.listen(h)
	asking.Wait()
	w.pause(2 * ttl / 3)
	w.release(h)
}

// extend asks for more time, and records it as a failure if it is told that it has that and does
// not.
func (w *worker) extend(h *held, d time.Duration) {
	o := w.about(Extend, h.op)
	w.rec.begin(o)
	err := h.lease.Extend(w.stop, d)
	returned := time.Now()
	o.Deadline = at(h.lease.Deadline())
	margin := max(25*time.Millisecond, d/50) + time.Millisecond
	if o.Result, o.Detail = resultOf(err); err == nil && o.Deadline < o.Call+int64(d-margin) {
		o.Result, o.Detail = Failed, "shorter than asked for"
	}
	w.rec.end(o, returned)
}

// listen waits for the end of a lease, and records it if it is later than promised.
func (w *worker) listen(h *held) {
	select {
	case <-h.lease.Done():
	case <-w.stop.Done(): // it may be told in vain until now
		if h.lease.Err() != nil {
			return
		}
	}
	heard := time.Now()
	if deadline := at(h.lease.Deadline()); at(heard) > deadline {
		o := &Op{Proc: w.Proc, Worker: w.n, Do: told, Name: h.op.Name}
		w.rec.begin(o)
		o.Call = deadline
		w.rec.end(o, heard)
	}
}
