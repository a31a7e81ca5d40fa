package chaos

import (
	"context"
	"time"

	"github.com/holdfast-go/holdfast"
)

// overstay takes a lease that ends by itself, and unlocks too late.
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
	w.listen(h)
	w.pause(2 * ttl / 3)
	w.release(h)
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
