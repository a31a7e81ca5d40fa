package chaos

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/holdfast-go/holdfast"
)

// worker is one goroutine of a client process.
type worker struct {
	*client
	n   int
	rng *rand.Rand
}

// held is a lease and the operation that brought it.
type held struct {
	lease *holdfast.Lease
	op    *Op
}

// pause is work or thinking time, not waiting for anything.
func (w *worker) pause(most time.Duration) {
	t := time.NewTimer(time.Duration(w.rng.Int64N(int64(most))))
	defer t.Stop()
	<-t.C
}

// target is one side of a lock.
type target struct {
	name   string
	shared bool
	make   lockFunc
	limit  time.Duration // by WithMaxHold; 0: none
	n      int           // of a semaphore: how many permits
}

// pick chooses a kind, and of a read-write lock mostly the readers' side.
func (w *worker) pick(name func(*Kind) string) target {
	k := &Kinds[w.rng.IntN(len(Kinds))]
	t := w.side(k, name(k))
	if t.name == k.slow() {
		t.make = slow(t.make)
	}
	return t
}

// side chooses the side of a lock.
func (w *worker) side(k *Kind, name string) target {
	if k.Shared != nil && w.rng.IntN(5) < 3 {
		return target{name: name, shared: true, make: k.Shared}
	}
	t := target{name: name, make: k.Exclusive}
	if k.Permits > 0 {
		t.n = 1 + w.rng.IntN(mostPermits)
		t.make = permits(t.n)
	}
	return t
}

// acquire locks and records. chain is the owner to re-enter, or 0.
func (w *worker) acquire(ctx context.Context, do Action, t target, chain int64, opts ...holdfast.LockOption) *held {
	if t.limit != 0 {
		opts = append(opts, holdfast.WithMaxHold(t.limit))
	}
	l := t.make(w.m, t.name, opts...)
	o := &Op{Proc: w.Proc, Worker: w.n, Do: do, Name: t.name, Shared: t.shared, Chain: chain, Fixed: len(opts) > 0, Permits: t.n}
	w.rec.begin(o)
	if t.limit != 0 {
		o.Limit = o.Call + int64(t.limit)
	}
	ask := l.Lock
	if do == TryLock {
		ask = l.TryLock
	}
	lease, err := ask(ctx)
	returned := time.Now()
	o.Result, o.Detail = resultOf(err)
	h := &held{lease: lease, op: o}
	if err == nil {
		o.Token, o.Deadline = lease.Token(), at(lease.Deadline())
	}
	w.rec.end(o, returned)
	if err != nil {
		return nil
	}
	return h
}

// release unlocks and records. The claim ends when the operation is called.
func (w *worker) release(h *held) {
	a := h.op
	o := &Op{Proc: w.Proc, Worker: w.n, Do: Unlock, Name: a.Name, Shared: a.Shared, Chain: a.Chain, Lease: a.ID, Deadline: max(at(h.lease.Deadline()), a.Deadline)}
	w.rec.begin(o)
	looked, valid := now(), h.lease.Valid()
	late := valid && looked > at(h.lease.Deadline()) // it may have moved on since, but not back
	err := h.lease.Unlock(context.Background())
	returned := time.Now()
	if o.Result, o.Detail = resultOf(err); late {
		o.Result, o.Detail = Failed, "valid after its deadline"
	}
	w.rec.end(o, returned)
}

// work does everything that a caller can do, on the busy locks.
func (w *worker) work() {
	for w.stop.Err() == nil {
		w.pause(20 * time.Millisecond)
		t := w.pick((*Kind).busy)
		switch dice := w.rng.IntN(95); {
		case w.rng.IntN(100) < w.Overstay:
			w.overstay(t)
		case w.rng.IntN(20) == 0:
			w.downgrade()
		case t.n > 0 && dice >= 80: // it has no re-entry, and is held or not by what a caller wants
			w.lockFor(time.Duration(w.rng.Int64N(int64(5*time.Millisecond)))+1, t)
		case dice < 50:
			w.section(w.acquire(w.stop, TryLock, t, 0))
		case dice < 75:
			w.lockFor(300*time.Millisecond, t)
		case dice < 80:
			w.lockFor(8*time.Second, t)
		case dice < 90:
			w.reenter(t)
		default:
			w.lockFor(time.Duration(w.rng.Int64N(int64(5*time.Millisecond)))+1, t)
		}
	}
}

// section is the critical section. h may be nil.
func (w *worker) section(h *held) {
	if h == nil {
		return
	}
	w.pause(15 * time.Millisecond)
	w.release(h)
}

func (w *worker) lockFor(patience time.Duration, t target) {
	ctx, cancel := context.WithTimeout(w.stop, patience)
	defer cancel()
	w.section(w.acquire(ctx, Lock, t, 0))
}

// reenter locks once more, as the same owner.
func (w *worker) reenter(t target) {
	inner, first := t, false
	if k := kindOf(t.name); k.Shared != nil && !t.shared && w.rng.IntN(2) == 0 {
		inner.shared, inner.make = true, k.Shared // a writer may read as well
	}
	if inner.shared {
		first = w.rng.IntN(2) == 0
	}
	w.nest(t, inner, first)
}

// downgrade takes the write side of a read-write lock, then the read side, and gives up the
// write side first.
func (w *worker) downgrade() {
	for i := range Kinds {
		if k := &Kinds[i]; k.Shared != nil {
			w.nest(target{name: k.busy(), make: k.Exclusive}, target{name: k.busy(), shared: true, make: k.Shared}, true)
		}
	}
}

// nest locks outer and, as the same owner, inner, and gives up one and then the other.
func (w *worker) nest(outer, inner target, outerFirst bool) {
	ctx, cancel := context.WithTimeout(w.stop, 300*time.Millisecond)
	defer cancel()
	first := w.acquire(ctx, Lock, outer, 0)
	if first == nil {
		return
	}
	second := w.acquire(first.lease.Context(w.stop), Lock, inner, first.op.Chain)
	if second != nil && !outerFirst {
		first, second = second, first
	}
	if second != nil {
		w.pause(5 * time.Millisecond)
		w.release(first)
		first = second
	}
	w.pause(5 * time.Millisecond)
	w.release(first)
}

// dwell is a caller of the slow locks. It holds them until they have been renewed, and now and then for
// longer than a lease.
func (w *worker) dwell() {
	for w.stop.Err() == nil {
		w.pause(20 * time.Millisecond)
		t := w.pick((*Kind).slow)
		ctx, cancel := context.WithTimeout(w.stop, 8*time.Second)
		h := w.acquire(ctx, Lock, t, 0)
		cancel()
		if h == nil {
			continue
		}
		if k := kindOf(t.name); k.Shared != nil && !t.shared && w.rng.IntN(2) == 0 { // a downgrade, to be renewed as well
			if r := w.acquire(h.lease.Context(w.stop), Lock, target{name: t.name, shared: true, make: slow(k.Shared)}, h.op.Chain); r != nil {
				w.release(h)
				h = r
			}
		}
		most := 100 * time.Millisecond
		if w.rng.IntN(5) == 0 {
			most = 3 * slowTTL / 2
		}
		for until := time.Now().Add(time.Duration(w.rng.Int64N(int64(most)))); time.Now().Before(until); {
			if w.calm.Load() || w.stop.Err() != nil || h.lease.Err() != nil {
				break
			}
			w.pause(10 * time.Millisecond)
		}
		w.release(h)
	}
}

// wait is a caller of the quiet locks.
func (w *worker) wait() {
	for w.stop.Err() == nil {
		t := w.pick((*Kind).quiet)
		ctx, cancel := context.WithTimeout(w.stop, 8*time.Second)
		h := w.acquire(ctx, Lock, t, 0)
		cancel()
		if h != nil {
			w.pause(5 * time.Millisecond)
			w.release(h)
		}
		w.pause(5 * time.Millisecond)
	}
}

// keep holds a private lock for as long as it can, and takes it again when it is lost.
func (w *worker) keep(name string) {
	t := target{name: name, make: mutex}
	for w.stop.Err() == nil {
		h := w.acquire(w.stop, Lock, t, 0)
		if h == nil {
			w.pause(100 * time.Millisecond) // Redis is down, or the nemesis has put something else there
			continue
		}
		w.listen(h)
		w.release(h)
	}
}

// watch records when the process did not get to run.
func (w *worker) watch() {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for last := time.Now(); w.stop.Err() == nil; <-tick.C {
		looked := time.Now()
		if looked.Sub(last) > stallBound {
			o := &Op{Proc: w.Proc, Worker: w.n, Do: stall}
			w.rec.begin(o)
			o.Call = at(last)
			w.rec.end(o, looked)
		}
		last = looked
	}
}
