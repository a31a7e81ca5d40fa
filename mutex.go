package holdfast

import (
	"context"
	"time"

	"github.com/holdfast-go/holdfast/internal/wire"
)

// Mutex is a reentrant mutual exclusion lock, shared with Redisson's RLock of the
// same name (and, WithFencing, its RFencedLock).
//
// A Mutex is a handle: it has no state, is cheap to make and safe for concurrent
// use. What locks is the name.
//
// A locked Mutex belongs to an owner, never to a goroutine or to a handle. Each Lock
// is a new owner, unless its context carries one (Lease.Context): then a Lock of a
// lock that this owner holds returns at once, without a Redis command, with a lease
// of its own and the same fencing token, and the lock is free after the last of these
// leases is unlocked. A lease taken by re-entry lives on the hold of the first: its
// own lease options have no effect.
//
// Among the goroutines of one process the lock is granted in the order of their
// calls. Between processes no order is promised.
type Mutex struct{ handle }

// Mutex returns the handle of the named mutex. A bad name or option is reported by
// the first call on the handle.
func (m *Manager) Mutex(name string, opts ...LockOption) *Mutex {
	return &Mutex{m.newHandle("mutex", name, opts)}
}

// Lock locks the mutex. It blocks until the lock is granted or ctx is done, and while
// Redis is in trouble it keeps trying until then.
//
// The lease is renewed until Unlock, Manager.Close or loss, unless WithFixedLease or
// WithMaxHold say otherwise. On error the lock is not held and nothing is kept: Lock
// returns ErrNotAcquired with the context's cause if ctx ended first, also if the
// grant came at that moment (it has then been given back); ErrUnavailable, also with
// that cause, if Redis was the reason; ErrClosed, ErrWrongKind, ErrInvalidName or
// ErrInvalidOption. It returns within 50 ms of the end of ctx, whatever Redis does;
// a request that is under way then is undone in the background.
func (l *Mutex) Lock(ctx context.Context) (*Lease, error) { return l.acquire(ctx, false) }

// TryLock asks once, without waiting for anybody. It returns ErrNotAcquired if another
// owner held the lock at some moment of the call, and ErrUnavailable if Redis refused,
// or did not answer within a second (a quarter of a short lease); up to as long again if
// a release of the lock by this process is still unanswered. Otherwise it is like Lock.
func (l *Mutex) TryLock(ctx context.Context) (*Lease, error) { return l.acquire(ctx, true) }

// LockAsync is Lock without the wait: the result arrives on the returned channel,
// exactly one, buffered, so that nobody needs to receive it for anything to proceed. A
// lease that arrives is held, and must be unlocked, even if ctx has ended since. No
// goroutine is parked for it.
func (l *Mutex) LockAsync(ctx context.Context) <-chan Result { return l.acquireAsync(ctx) }

// handle is a named lock with its options: what the kinds have in common.
type handle struct {
	m    *Manager
	kind string
	name string // as given
	keys *wire.Keys
	cfg  *lockConfig // shared with others that have no options of their own
	err  error       // of the name or the options: the result of every call
}

func (m *Manager) newHandle(kind, name string, opts []LockOption) handle {
	h := handle{m: m, kind: kind, name: name, cfg: m.lock}
	mapped := m.mapName(name)
	if err := wire.CheckName(mapped); err != nil {
		h.err = newLockError(ErrInvalidName, name, err)
		return h
	}
	if len(opts) > 0 {
		own := *m.lock
		for _, o := range opts {
			if o == nil {
				h.err = &OptionError{"LockOption", nil, "no option"}
				return h
			}
			o.applyLock(&own)
		}
		if h.err = own.check(); h.err != nil {
			return h
		}
		h.cfg = &own
	}
	h.keys = wire.NewKeys(mapped, h.cfg.fencing)
	return h
}

// mapped is the name that Redis sees.
func (h *handle) mapped() string { return h.keys.Lock.(string) }

// acquire is Lock and, with once, TryLock.
func (h *handle) acquire(ctx context.Context, once bool) (*Lease, error) {
	span := h.m.telemetry.acquire(ctx, h)
	lease, w, e, err := h.enter(ctx, request{once: once, trace: span.trace()})
	if w != nil {
		select {
		case <-w.Ready():
			lease, err = w.Outcome().Lease, w.Outcome().Err
		case <-ctx.Done():
			err = e.leave(ctx, w)
		}
	}
	span.end(lease, err)
	return lease, err
}

func (h *handle) acquireAsync(ctx context.Context) <-chan Result {
	result := make(chan Result, 1)
	lease, w, _, err := h.enter(ctx, request{async: result})
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
		return nil, nil, nil, newLockError(ErrNotAcquired, h.name, contextCauses(ctx)...)
	}
	r.h, r.owner = h, ownerFrom(ctx)
	for {
		e, err := h.m.entry(h)
		if err != nil {
			return nil, nil, nil, err
		}
		e.mu.Lock()
		if e.dead {
			e.mu.Unlock() // forgotten since: its successor is in the registry
			continue
		}
		lease, w, err := e.enterLocked(ctx, r)
		e.mu.Unlock()
		return lease, w, e, err
	}
}

func (e *entry) enterLocked(ctx context.Context, r request) (*Lease, *waiter, error) {
	h, o := r.h, r.owner
	switch x := e.hold; {
	case e.closed:
		return nil, nil, newLockError(ErrClosed, h.name)
	case x != nil && o != nil && x.caller() == o && time.Now().Before(x.deadline):
		lease, err := e.reenterLocked(x, &r)
		return lease, nil, err
	case x != nil && r.once:
		return nil, nil, newLockError(ErrNotAcquired, h.name)
	}
	r.after = e.tries
	w := &waiter{Value: r}
	e.waiters.Push(w)
	if r.async != nil && ctx.Done() != nil {
		w.Value.unhook = context.AfterFunc(ctx, func() { e.leaveAsync(ctx, w) })
	}
	if r.once {
		e.onces++
	}
	if r.once || e.waiters.Len() == 1 {
		e.ask = true
	}
	e.stepLocked()
	return nil, w, nil
}

// leave takes w, whose ctx is done, out of the queue. If the lock was granted in the
// same moment it is given back: a caller whose ctx is done always gets an error.
func (e *entry) leave(ctx context.Context, w *waiter) error {
	e.mu.Lock()
	err := e.noVerdictLocked(ctx, w.Value.h.name)
	left := e.waiters.Remove(w)
	if left {
		if w.Value.once {
			e.onces--
		}
		e.stepLocked()
	}
	e.mu.Unlock()
	if left {
		return err
	}
	if r := w.Outcome(); r.Err != nil {
		err = r.Err
	} else {
		r.Lease.giveBack()
	}
	return err
}

// leaveAsync does so for LockAsync: a result that has been delivered stays.
func (e *entry) leaveAsync(ctx context.Context, w *waiter) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if w.Parked() {
		e.deliverLocked(w, Result{Err: e.noVerdictLocked(ctx, w.Value.h.name)})
		e.stepLocked()
	}
}
