package engine

import (
	"context"
	"slices"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/internal/command"
	"github.com/holdfast-go/holdfast/internal/wire"
)

// Lock is a named lock, or a side of one.
type Lock struct {
	*named
	Kind Kind
}

// named is a lock by its name, with its options: what its handles share.
type named struct {
	engine *Engine
	family Kind
	Name   string // as given
	Mapped string // as Redis sees it
	Terms  *Terms // shared with others that have no options of their own
	Class  *class // for metrics; nil: none

	keys  atomic.Pointer[wire.Keys] // see wireKeys; nil: not derived yet
	entry atomic.Pointer[entry]     // where the last caller went; it may be dead
}

// NewLock returns the lock of a name that Redis knows as mapped. If eng is nil, only its name may be used.
func (eng *Engine) NewLock(k Kind, name, mapped string, cfg *Terms) Lock {
	n := &named{engine: eng, family: k, Name: name, Mapped: mapped, Terms: cfg}
	if eng != nil {
		n.Class = eng.Classes.get(name)
	}
	return Lock{n, k}
}

// Whole is several locks, of which h is the first, for names and telemetry.
func (h Lock) Whole(k Kind, name string) Lock {
	return Lock{&named{engine: h.engine, family: k, Name: name, Terms: h.Terms, Class: h.Class}, k}
}

// Side is the side of a read-write lock that k says.
func (h Lock) Side(k Kind) Lock { return Lock{h.named, k} }

// wireKeys returns the keys of the lock. Callers that the process itself lets in never
// ask for them.
func (n *named) wireKeys() *wire.Keys {
	keys := n.keys.Load()
	if keys == nil {
		if n.family.rw() {
			keys = wire.NewRWKeys(n.Mapped, n.Terms.Fencing)
		} else {
			keys = wire.NewKeys(n.Mapped, n.Terms.Fencing)
		}
		n.keys.Store(keys)
	}
	return keys
}

// Obtain enters and waits for the outcome. With once, the first answer of Redis decides. trace is the parent of the spans of requests; nil: none.
func (h *Lock) Obtain(ctx context.Context, once bool, trace context.Context) (*Lease, error) {
	lease, w, e, err := h.enter(ctx, request{once: once, trace: trace})
	if w == nil {
		return lease, err
	}
	if done := ctx.Done(); done == nil {
		<-w.Ready() // for less than a select with one case that never comes
	} else {
		select {
		case <-w.Ready():
		case <-done:
			return nil, e.leave(ctx, w)
		}
	}
	r := h.engine.outcomeOf(w)
	return r.lease, h.engine.explain(h.Name, r.verdict)
}

// ObtainAsync is Obtain without the wait: told is called with the outcome, once and with no lock held, and must not block.
func (h *Lock) ObtainAsync(ctx context.Context, told func(*Lease, error)) {
	if lease, w, _, err := h.enter(ctx, request{async: told}); w == nil {
		told(lease, err)
	}
}

// enter does what needs no waiting: it returns a lease or an error at once, or parks
// a waiter at the entry it returns with it. An async waiter leaves by itself when ctx
// is done.
func (h *Lock) enter(ctx context.Context, r request) (*Lease, *waiter, *entry, error) {
	if ctx.Err() != nil {
		return nil, nil, nil, h.engine.explain(h.Name, because(NotAcquired, ContextCauses(ctx)...))
	}
	r.h = h
	if carries(ctx) {
		if CarriesLeases(ctx) {
			if lease, v := h.Reenter(ctx); lease != nil || v != nil {
				return lease, nil, nil, h.engine.explain(h.Name, v)
			}
		}
		r.label = labelOf(ctx)
	}
	m := moment{engine: h.engine}
	e, v := h.lockEntry()
	if v != nil {
		return nil, nil, nil, h.engine.explain(h.Name, v)
	}
	lease, w, v := e.enterLocked(&m, r)
	e.unlock(&m)
	if w != nil && r.async != nil && ctx.Done() != nil {
		e.leaveWith(ctx, w)
	}
	return lease, w, e, h.engine.explain(h.Name, v)
}

// lockEntry returns the lock's entry with its mu locked. If there is none, it is the one that the last caller left, or a new
// one.
func (h *Lock) lockEntry() (*entry, *Verdict) {
	e := h.entry.Load()
	for {
		if e != nil {
			e.mu.Lock()
			if e.life != lifeOver || h.engine.recallLocked(e) {
				return e, nil
			}
			e.mu.Unlock() // its successor is in the registry
		}
		var v *Verdict
		if e, v = h.engine.entry(h.named); v != nil {
			return nil, v
		}
	}
}

func (e *entry) enterLocked(m *moment, r request) (*Lease, *waiter, *Verdict) {
	h := r.h
	if e.life == lifeClosed {
		return nil, nil, because(Closed)
	}
	if m.clientClosed() {
		return nil, nil, because(Unavailable, command.ErrClientClosed)
	}
	if e.waiters.Len() == 0 && e.hold == nil && !e.reads.none() {
		now := m.now()
		for _, x := range e.reads.all() {
			if x.joins(h, now) {
				e.askDemandLocked(m, x)
				return e.leaseLocked(x, h, grantedByHandoff, m.age(), r.label), nil, nil
			}
		}
	}
	if r.once && e.inTheWayLocked(h.Kind, m.now()) {
		return nil, nil, because(NotAcquired)
	}
	switch {
	case e.hold != nil && e.hold.leases != nil:
		r.came = max(m.roughly(), e.hold.leases.since) // it came after that lease
	case e.hold == nil && e.waiters.Len() == 0:
		r.came = m.age()
		e.known.since = r.came // what was before is nothing to this caller
	default:
		r.came = m.roughly()
	}
	r.stood = e.hold != nil || e.waiters.Len() > 0 || h.Kind == WriteKind && !e.reads.none()
	r.after, r.behind = e.tries, e.releasing+e.leftBehind()
	var w *waiter
	if r.async == nil {
		w = e.engine.newWaiter()
	} else {
		w = new(waiter)
	}
	w.Value = r
	e.waiters.Push(w)
	if r.once {
		e.onces++
	}
	if r.once || e.waiters.Len() == 1 && !e.stepAsideLocked(m) {
		e.missed.add(missedLock)
	}
	e.stepLocked(m)
	return nil, w, nil
}

// inTheWayLocked reports whether a hold or a waiter of this process keeps a caller that does not wait from getting
// the lock. A hold beyond its deadline does not, even if its end has not been handled yet, after a pause of the
// process. Then the caller sends a request.
func (e *entry) inTheWayLocked(k Kind, now time.Time) bool {
	front := e.waiters.Front()
	switch {
	case e.hold != nil:
		return now.Before(e.hold.deadline)
	case k == WriteKind:
		return slices.ContainsFunc(e.reads.all(), func(h *hold) bool { return now.Before(h.deadline) })
	case k == ReadKind:
		return front != nil && !front.Value.once && front.Value.h.Kind == WriteKind
	}
	return false
}

// leave takes w, whose ctx is done, out of the queue. If the lock was granted at the same moment, it is released:
// a caller whose ctx is done always gets an error.
func (e *entry) leave(ctx context.Context, w *waiter) error {
	causes := ContextCauses(ctx) // while no lock is held: ctx may be code of the user, and look at a lease
	m := e.moment()
	e.mu.Lock()
	v, busy := e.noVerdictLocked(&m, causes, w), e.busyLocked(w)
	left := e.waiters.Remove(w)
	if left {
		e.waitedInVainLocked(&m, w, busy)
		e.leftLocked(&m, w)
		e.stepLocked(&m)
	}
	e.unlock(&m)
	if !left {
		<-w.Ready() // at once: the outcome is there
	}
	name := w.Value.h.Name
	if r := e.engine.outcomeOf(w); !left && r.verdict != nil {
		v = r.verdict
	} else if !left {
		r.lease.GiveBack()
	}
	return e.engine.explain(name, v)
}

// leaveWith has w, of LockAsync, leave the queue when ctx ends.
func (e *entry) leaveWith(ctx context.Context, w *waiter) {
	unhook := context.AfterFunc(ctx, func() { e.leaveAsync(ctx, w) })
	e.mu.Lock()
	parked := w.Parked()
	if parked {
		w.Value.unhook = unhook
	}
	e.mu.Unlock()
	if !parked {
		unhook()
	}
}

// leaveAsync is leave for LockAsync, except that a result that has been delivered stays.
func (e *entry) leaveAsync(ctx context.Context, w *waiter) {
	causes := ContextCauses(ctx)
	m := e.moment()
	e.mu.Lock()
	defer e.unlock(&m)
	if w.Parked() {
		e.waitedInVainLocked(&m, w, e.busyLocked(w))
		e.deliverLocked(&m, w, outcome{verdict: e.noVerdictLocked(&m, causes, w)})
		e.stepLocked(&m)
	}
}
