package holdfast

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/internal/wire"
)

// handle is what the kinds have in common: a named lock, or a side of one.
type handle struct {
	*named
	kind kind
}

// named is a lock by its name, with its options: what its handles share.
type named struct {
	m      *Manager
	family kind
	name   string      // as given
	mapped string      // as Redis sees it
	cfg    *lockConfig // shared with others that have no options of their own
	class  *class      // for metrics; nil: none
	err    error       // of the name or the options: the result of every call

	keys  atomic.Pointer[wire.Keys] // see wireKeys; nil: nobody has asked yet
	entry atomic.Pointer[entry]     // where the last caller went; it may be dead
}

func (m *Manager) newHandle(k kind, name string, opts []LockOption) handle {
	if m == nil {
		return handle{&named{name: name, err: &OptionError{"Manager", nil, "manager of lock " + quote(name) + " is nil"}}, k}
	}
	h := handle{&named{m: m, family: k, name: name, mapped: m.mapName(name), cfg: m.lock, class: m.classes.get(name)}, k}
	if err := wire.CheckName(h.mapped); err != nil {
		h.err = invalidName(name, h.mapped, err)
		return h
	}
	if len(opts) > 0 {
		own := *m.lock
		for i, o := range opts {
			if o == nil {
				h.err = &OptionError{"LockOption", nil, fmt.Sprintf("option %d of lock %s is nil", i+1, quote(name))}
				return h
			}
			o.applyLock(&own)
		}
		if h.err = own.check(); h.err != nil {
			return h
		}
		m.prepare(&own)
		h.cfg = &own
	}
	return h
}

// wireKeys returns the keys of the lock. Callers that the process itself lets in never
// ask for them.
func (n *named) wireKeys() *wire.Keys {
	keys := n.keys.Load()
	if keys == nil {
		if n.family.rw() {
			keys = wire.NewRWKeys(n.mapped, n.cfg.fencing)
		} else {
			keys = wire.NewKeys(n.mapped, n.cfg.fencing)
		}
		n.keys.Store(keys)
	}
	return keys
}

// lock is a method of a lock: Lock or, if once, TryLock.
func (h *handle) lock(ctx context.Context, call string, once bool) (*Lease, error) {
	return h.acquire(ctx, call, once, !part)
}

// acquirePart is lock of one of several locks.
func (h *handle) acquirePart(ctx context.Context, once bool) (*Lease, error) {
	return h.acquire(ctx, "Lock", once, part)
}

func (h *handle) acquire(ctx context.Context, call string, once, isPart bool) (*Lease, error) {
	if ctx == nil || !h.made() {
		return nil, badCall(ctx, call, h)
	}
	_, op := h.observe(ctx, isPart)
	lease, err := h.obtain(ctx, request{once: once, trace: op.Trace()})
	observed(op, lease, err)
	return lease, err
}

// obtain enters and waits for the outcome.
func (h *handle) obtain(ctx context.Context, r request) (*Lease, error) {
	lease, w, e, err := h.enter(ctx, r)
	if w == nil {
		return lease, err
	}
	select {
	case <-w.Ready():
		h.m.ready.Put(w.Ready())
		return w.Outcome().lease, h.m.explain(h.name, w.Outcome().verdict)
	case <-ctx.Done():
		return nil, e.leave(ctx, w)
	}
}

func (h *handle) acquireAsync(ctx context.Context) <-chan Result {
	result := make(chan Result, 1)
	lease, w, _, err := h.enter(ctx, request{async: func(r outcome) { // buffered for it
		result <- Result{r.lease, h.m.explain(h.name, r.verdict)}
	}})
	if w == nil {
		result <- Result{lease, err}
	}
	return result
}

// enter does what needs no waiting: it returns a lease or an error at once, or parks
// a waiter at the entry it returns with it. An async waiter leaves by itself when ctx
// is done.
func (h *handle) enter(ctx context.Context, r request) (*Lease, *waiter, *entry, error) {
	if h.err != nil {
		return nil, nil, nil, h.err
	}
	if ctx.Err() != nil {
		return nil, nil, nil, h.m.explain(h.name, because(notAcquired, contextCauses(ctx)...))
	}
	if carriesLeases(ctx) {
		if lease, v := h.reenter(ctx); lease != nil || v != nil {
			return lease, nil, nil, h.m.explain(h.name, v)
		}
	}
	r.h, r.label = h, labelOf(ctx)
	e, v := h.lockEntry()
	if v != nil {
		return nil, nil, nil, h.m.explain(h.name, v)
	}
	lease, w, v := e.enterLocked(r)
	e.mu.Unlock()
	if w != nil && r.async != nil && ctx.Done() != nil {
		e.leaveWith(ctx, w)
	}
	return lease, w, e, h.m.explain(h.name, v)
}

// lockEntry returns the lock's entry with its mu locked; a new one if there is none.
func (h *handle) lockEntry() (*entry, *verdict) {
	e := h.entry.Load()
	for {
		if e != nil {
			e.mu.Lock()
			if !e.dead {
				return e, nil
			}
			e.mu.Unlock() // forgotten since: its successor is in the registry
		}
		var v *verdict
		if e, v = h.m.entry(h.named); v != nil {
			return nil, v
		}
	}
}

func (e *entry) enterLocked(r request) (*Lease, *waiter, *verdict) {
	h := r.h
	if e.closed {
		return nil, nil, because(closed)
	}
	if e.m.executor.Closed() {
		return nil, nil, because(unavailable, errClientClosed)
	}
	if e.waiters.Len() == 0 && e.hold == nil && !e.reads.none() {
		now := time.Now()
		for _, x := range e.reads.all() {
			if x.joins(h, now) {
				e.m.stats.handedOff.Add(1)
				e.askDemandLocked(x, now)
				return e.leaseLocked(x, h, grantedByHandoff, now, r.label), nil, nil
			}
		}
	}
	if r.once && e.inTheWayLocked(h.kind, time.Now()) {
		return nil, nil, because(notAcquired)
	}
	r.came = time.Since(e.m.epoch)
	if e.waiters.Len() == 0 && e.hold == nil {
		e.silent = r.came // what was before is nothing to this caller
	}
	r.after, r.behind = e.tries, e.releasing+e.orphans
	w := &waiter{Value: r}
	var ready chan struct{}
	if r.async == nil {
		ready = e.m.newReady()
	}
	e.waiters.Push(w, ready)
	if r.once {
		e.onces++
	}
	if r.once || e.waiters.Len() == 1 && !e.stepAsideLocked() {
		e.ask = true
	}
	e.stepLocked()
	return nil, w, nil
}

// inTheWayLocked reports whether somebody in this process keeps a caller that does not
// wait from getting the lock. A hold beyond its deadline does not, even if, after a pause
// of the process, its end has not been handled yet: then the caller asks Redis.
func (e *entry) inTheWayLocked(k kind, now time.Time) bool {
	front := e.waiters.Front()
	switch {
	case e.hold != nil:
		return now.Before(e.hold.deadline)
	case k == writeKind:
		return slices.ContainsFunc(e.reads.all(), func(h *hold) bool { return now.Before(h.deadline) })
	case k == readKind:
		return front != nil && !front.Value.once && front.Value.h.kind == writeKind
	}
	return false
}

// leave takes w, whose ctx is done, out of the queue. If the lock was granted in the
// same moment it is given back: a caller whose ctx is done always gets an error.
func (e *entry) leave(ctx context.Context, w *waiter) error {
	causes := contextCauses(ctx) // while no lock is held: ctx may be code of the user, and look at a lease
	e.mu.Lock()
	v := e.noVerdictLocked(causes, w)
	left := e.waiters.Remove(w)
	if left {
		e.waitedLocked(w, time.Now())
		e.goneLocked(w)
		e.stepLocked()
	}
	e.mu.Unlock()
	if !left {
		<-w.Ready() // at once: it has been told
	}
	e.m.ready.Put(w.Ready())
	if r := w.Outcome(); !left && r.verdict != nil {
		v = r.verdict
	} else if !left {
		r.lease.giveBack()
	}
	return e.m.explain(w.Value.h.name, v)
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
	causes := contextCauses(ctx)
	e.mu.Lock()
	defer e.mu.Unlock()
	if w.Parked() {
		e.waitedLocked(w, time.Now())
		e.deliverLocked(w, outcome{verdict: e.noVerdictLocked(causes, w)})
		e.stepLocked()
	}
}
