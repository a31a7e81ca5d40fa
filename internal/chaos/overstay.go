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

// several takes two or three locks at once, all or none. Each of them has an operation of its own
// in the history.
func (w *worker) several() {
	// Beside the busy locks a quiet one, of the kind that one script can take together.
	targets := []target{{name: Kinds[0].quiet(), make: Kinds[0].Exclusive}}
	for i := range Kinds {
		targets = append(targets, w.side(&Kinds[i], Kinds[i].busy()))
	}
	w.rng.Shuffle(len(targets), func(i, j int) { targets[i], targets[j] = targets[j], targets[i] })
	targets = targets[:2+w.rng.IntN(2)]

	var locks []holdfast.Locker
	for _, t := range targets {
		locks = append(locks, t.make(w.m, t.name))
	}
	all, err := holdfast.NewMulti(locks...)
	if err != nil {
		panic(err)
	}
	ask := all.Lock
	if w.rng.IntN(2) == 0 {
		ask = all.TryLock
	}
	var ops []*Op
	for _, t := range targets {
		o := &Op{Proc: w.Proc, Worker: w.n, Do: Several, Name: t.name, Shared: t.shared, Permits: t.n}
		w.rec.begin(o)
		ops = append(ops, o)
	}
	ctx, cancel := context.WithTimeout(w.stop, 300*time.Millisecond)
	defer cancel()
	lease, err := ask(ctx)
	returned := time.Now()
	for _, o := range ops {
		if o.Result, o.Detail = resultOf(err); o.Result == Refused {
			o.Result = Ended // which of them is held by another one is not said
		}
		if err == nil {
			o.Deadline = at(lease.Deadline())
		}
		w.rec.end(o, returned)
	}
	if err == nil {
		w.pause(15 * time.Millisecond)
		w.release(&held{lease: lease, op: ops[0], more: ops[1:]})
	}
}
