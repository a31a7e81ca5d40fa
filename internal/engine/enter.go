package engine

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/internal/command"
	"github.com/holdfast-go/holdfast/internal/lock"
	"github.com/holdfast-go/holdfast/internal/protocol"
	"github.com/holdfast-go/holdfast/internal/telemetry"
	"github.com/holdfast-go/holdfast/internal/wire"
)

// Lock is a named lock, or a side of one.
type Lock struct {
	*named
	Kind lock.Kind
}

// named is a lock by its name, with its options: what its handles share.
type named struct {
	lock.Handle // what the lock's callers ask with

	engine *Engine
	family lock.Kind
	Mapped string // as Redis sees it
	Terms  *Terms // shared with others that have no options of their own
	Class  *class // for metrics; nil: none

	keys  atomic.Pointer[wire.Keys] // see wireKeys; nil: not derived yet
	entry atomic.Pointer[entry]     // where the last caller went; it may be dead
}

// NewLock returns the lock of a name that Redis knows as mapped. If eng is nil, only its name may be used.
func (eng *Engine) NewLock(k lock.Kind, name, mapped string, cfg *Terms) Lock {
	n := &named{engine: eng, family: k, Mapped: mapped, Terms: cfg}
	n.Name = name
	if eng != nil {
		n.Class = eng.Classes.get(name)
		n.Handle.Class = n.Class
	}
	if cfg != nil { // else it is never entered
		n.Handle.Terms = &cfg.Terms
	}
	return Lock{n, k}
}

// Terms are what the options of a lock add up to.
type Terms = protocol.Terms

// NewTerms are those of a lock that is renewed, and has no other options.
func NewTerms(ttl time.Duration) (c Terms) {
	c.TTL = ttl
	return c
}

// Whole is several locks, of which h is the first, for names and telemetry.
func (h Lock) Whole(k lock.Kind, name string) Lock {
	return Lock{&named{Handle: lock.Handle{Name: name, Class: h.Class, Terms: h.Handle.Terms}, engine: h.engine, family: k, Terms: h.Terms, Class: h.Class}, k}
}

// Side is the side of a read-write lock that k says.
func (h Lock) Side(k lock.Kind) Lock { return Lock{h.named, k} }

// Subject is the lock as telemetry names it, for a Lock or TryLock.
func (h *Lock) Subject() telemetry.Subject {
	return telemetry.Subject{Name: h.Name, Kind: h.Kind.String(), Class: h.Class.Label(), TTL: h.Terms.TTL}
}

// wireKeys returns the keys of the lock. Callers that the process itself lets in never
// ask for them.
func (n *named) wireKeys() *wire.Keys {
	keys := n.keys.Load()
	if keys == nil {
		keys = families[n.family].keys(n.Mapped)
		n.keys.Store(keys)
	}
	return keys
}

// by is what its callers ask with.
func (h *Lock) by() lock.By {
	return lock.By{Handle: &h.named.Handle, Kind: h.Kind}
}

// obtain enters and waits for the outcome. With once, the first answer of Redis decides. trace is the parent of the spans of requests; nil: none.
func (h *Lock) obtain(ctx context.Context, once bool, trace context.Context) (*Lease, error) {
	lease, w, e, err := h.enter(ctx, once, trace, nil)
	if w == nil {
		return lease, err
	}
	if done := ctx.Done(); done == nil {
		<-w.ready // for less than a select with one case that never comes
	} else {
		select {
		case <-w.ready:
		case <-done:
			return nil, e.leave(ctx, w)
		}
	}
	return h.engine.outcomeOf(w)
}

// Take asks for the lock, observed: it is what Lock and TryLock do.
func (h *Lock) Take(ctx context.Context, once bool) (*Lease, error) { return h.take(ctx, once, !part) }

// part says that an operation is on one of several locks: it has a span, and is not measured. They are
// measured as a whole, or no number of any type of lock would be that of the callers.
const part = true

func (h *Lock) take(ctx context.Context, once, isPart bool) (*Lease, error) {
	_, op := h.engine.Telemetry.Acquire(ctx, h.Subject, !isPart)
	lease, err := h.obtain(ctx, once, op.Trace())
	Observed(op, lease, err)
	return lease, err
}

// Observe begins a Lock or TryLock of h.
func (h *Lock) Observe(ctx context.Context) (context.Context, *telemetry.Operation) {
	return h.engine.Telemetry.Acquire(ctx, h.Subject, true)
}

// Observed ends op, a Lock or TryLock, with what it returns.
func Observed(op *telemetry.Operation, l *Lease, err error) {
	if op == nil {
		return
	}
	if l != nil {
		op.Granted(l.Mode(), l.Token())
	}
	outcome, sort := outcomeOf(err), ""
	if outcome == "error" {
		sort = errorType(err)
	}
	op.End(outcome, sort, err)
}

// ObtainAsync is obtain without the wait: told is called with the outcome, once and with no lock held, and must not block.
func (h *Lock) ObtainAsync(ctx context.Context, told func(*Lease, error)) {
	if lease, w, _, err := h.enter(ctx, false, nil, told); w == nil {
		told(lease, err)
	}
}

// enter does what needs no waiting: it returns a lease or an error at once, or parks
// a waiter at the entry it returns with it. An async waiter leaves by itself when ctx
// is done.
func (h *Lock) enter(ctx context.Context, once bool, trace context.Context, async func(*Lease, error)) (*Lease, *waiter, *entry, error) {
	if ctx.Err() != nil {
		return nil, nil, nil, h.engine.explain(h.Name, lock.Because(lock.NotAcquired, contextCauses(ctx)...))
	}
	var label *string
	var under context.Context
	if ctx.Value(carriesKey{}) != nil {
		if carriesLeases(ctx) {
			under = ctx
			if lease, v := h.reenter(ctx); lease != nil || v != nil {
				return lease, nil, nil, h.engine.explain(h.Name, v)
			}
		}
		label = labelOf(ctx)
	}
	var ev event
	ev.Begin(&h.engine.world, &h.engine.Settings)
	e, v := h.lockEntry()
	if v != nil {
		return nil, nil, nil, h.engine.explain(h.Name, v)
	}
	w := h.newWaiter(e, async)
	w.Once, w.Trace, w.label, w.under = once, trace, label, under
	l, v, parked := e.lock.Enter(&ev.Moment, &w.Waiter, h.engine.shut())
	lease := (*Lease)(l)
	if lease != nil {
		lease.setLabelLocked(label)
		h.Class.granted(l.Kind(), l.Mode())
	}
	h.engine.end(&ev, e)
	if !parked {
		h.engine.outcomeOf(w)
		return lease, nil, e, h.engine.explain(h.Name, v)
	}
	if async != nil && ctx.Done() != nil {
		e.leaveWith(ctx, w)
	}
	return nil, w, e, nil
}

// shut is why no request will bring anything; nil: some may.
func (eng *Engine) shut() error {
	if eng.Executor.Closed() {
		return command.ErrClientClosed
	}
	return nil
}

// leave takes w, whose ctx is done, out of the queue. If the lock was granted at the same moment, it is released:
// a caller whose ctx is done always gets an error.
func (e *entry) leave(ctx context.Context, w *waiter) error {
	causes := contextCauses(ctx) // while no lock is held: ctx may be code of the user, and look at a lease
	var v *lock.Verdict
	var left bool
	e.do(func(m *lock.Moment) {
		if v, left = e.lock.Leave(m, causes, &w.Waiter); left {
			w.settleLocked(m)
		}
	})
	if !left {
		<-w.ready // soon: the outcome is there
	}
	name := w.Name
	lease, refused := e.engine.outcomeOf(w)
	switch {
	case left:
	case refused != nil:
		return refused
	default:
		lease.giveBack()
	}
	return e.engine.explain(name, v)
}

// leaveWith has w, of LockAsync, leave the queue when ctx ends.
func (e *entry) leaveWith(ctx context.Context, w *waiter) {
	unhook := context.AfterFunc(ctx, func() { e.leaveAsync(ctx, w) })
	e.mu.Lock()
	parked := w.Parked()
	if parked {
		w.unhook = unhook
	}
	e.mu.Unlock()
	if !parked {
		unhook()
	}
}

// leaveAsync is leave for LockAsync, except that a result that has been delivered stays.
func (e *entry) leaveAsync(ctx context.Context, w *waiter) {
	causes := contextCauses(ctx)
	e.do(func(m *lock.Moment) { e.lock.Expel(m, causes, &w.Waiter) })
}

// waiter is a caller that waits: what the lock knows of it, and where its caller gets the outcome.
type waiter struct {
	lock.Waiter
	h      *Lock
	entry  *entry
	label  *string             // of WithLabel; nil: none
	under  context.Context     // of its caller, if that carries leases; else nil
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
func (eng *Engine) outcomeOf(w *waiter) (l *Lease, refused error) {
	l = (*Lease)(w.Lease)
	if w.Verdict != nil {
		refused = eng.explain(w.Name, w.Verdict)
	}
	if w.async == nil {
		w.Reset()
		w.h, w.entry, w.label, w.under = nil, nil, nil, nil
		eng.parked.Put(w)
	}
	return l, refused
}

// settleLocked is called when the outcome is there, before a later event of the entry.
func (w *waiter) settleLocked(m *lock.Moment) {
	if w.Waited && !w.Once { // one that asks once does not wait for another owner
		w.entry.waitedLocked(w.Came, m.Age())
	}
	if l := w.Lease; l != nil {
		(*Lease)(l).setLabelLocked(w.label)
		kind, mode := l.Kind(), l.Mode()
		w.h.Class.granted(kind, mode)
		if mode == lock.ByServer {
			w.entry.engine.Stats.Granted.Add(1)
		}
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

// contextCauses are the errors that a caller may look for when ctx has ended: why
// it was cancelled, and context.Canceled or DeadlineExceeded if that is not the
// same.
func contextCauses(ctx context.Context) []error {
	err, cause := ctx.Err(), context.Cause(ctx)
	if err == nil || cause == err {
		return []error{err}
	}
	return []error{cause, err}
}
