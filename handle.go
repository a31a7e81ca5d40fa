package holdfast

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/lock"
	"github.com/holdfast-go/holdfast/internal/wire"
)

// handle is what the kinds have in common: a lock of the engine, or a side of one.
type handle struct {
	m    *Manager
	lock engine.Lock
	err  error         // of the name or the options: the result of every call
	wait time.Duration // by WithWait; 0: not bounded
}

// keyOf returns the lock's key, which is what the name mapper makes of its name. The error names the lock as given, and the key if that
// is what is wrong.
func (m *Manager) keyOf(name string) (key string, err error) {
	if cause := wire.CheckLength(name); cause != nil {
		return name, engine.NewError(ErrInvalidName, name, cause)
	}
	key = m.mapName(name)
	cause := wire.CheckName(key)
	if cause == nil {
		return key, nil
	}
	if key != name {
		cause = fmt.Errorf("mapped to %s: %w", wire.Quote(key), cause)
	}
	return key, engine.NewError(ErrInvalidName, name, cause)
}

// keepsNot are the kinds whose locks no process keeps after Unlock.
var keepsNot = map[lock.Kind]string{lock.FairKind: "FairMutex", lock.SemaphoreKind: "Semaphore"}

func (m *Manager) newHandle(k lock.Kind, name string, opts []LockOption) handle {
	if !m.made() {
		return handle{lock: (*engine.Engine)(nil).NewLock(k, name, name, nil), err: &OptionError{"Manager", nil, "manager of lock " + wire.Quote(name) + " is nil, or New has not made it"}}
	}
	mapped, err := m.keyOf(name)
	return m.handleOf(k, name, mapped, err, opts)
}

// handleOf is newHandle for a name whose key is known; err: what is wrong with it.
func (m *Manager) handleOf(k lock.Kind, name, mapped string, err error, opts []LockOption) handle {
	own := m.lock
	if err == nil && len(opts) > 0 {
		own, err = m.lock.with(name, opts)
	}
	if err == nil && own.terms.Linger != 0 && !k.Lingers() {
		err = &OptionError{"WithLinger", own.terms.Linger, "must not be given to a " + keepsNot[k]}
	}
	if err == nil && own.terms.Idle != m.lock.terms.Idle && own.terms.Permits == 0 {
		err = &OptionError{"WithIdleTTL", own.terms.Idle, "must only be given to a Semaphore"}
	}
	if own.terms.Permits != 0 {
		own.terms.Wanted = false // a permit says no more than its manager
	}
	if err == nil && own != m.lock {
		m.engine.Process.Prepare(&own.terms)
	}
	return handle{m, m.engine.NewLock(k, name, mapped, &own.terms), err, own.wait}
}

// lockConfig is what the options of a lock add up to.
type lockConfig struct {
	terms engine.Terms
	wait  time.Duration // by WithWait; 0: not bounded
	err   error         // the first bad option
}

// check reports the first bad option, or values that exclude each other.
func (c *lockConfig) check() error {
	if c.err != nil {
		return c.err
	}
	if c.terms.Permits != 0 && c.terms.Value != "" {
		return &OptionError{"WithValue", c.terms.Value, "must not be given to a Semaphore"}
	}
	if c.terms.Permits != 0 && c.terms.Fencing {
		return &OptionError{"WithFencing", "true", "must not be given to a Semaphore"}
	}
	if c.terms.MaxHold != 0 && c.terms.MaxHold < c.terms.TTL {
		return &OptionError{"WithMaxHold", c.terms.MaxHold, fmt.Sprintf("must not be shorter than the lease of %v", c.terms.TTL)}
	}
	if c.terms.AtLeast != 0 && c.terms.MaxHold != 0 && c.terms.AtLeast > c.terms.MaxHold {
		return &OptionError{"WithHoldAtLeast", c.terms.AtLeast, fmt.Sprintf("must not be longer than the maximum hold of %v", c.terms.MaxHold)}
	}
	if c.terms.Fixed && c.terms.AtLeast > c.terms.TTL {
		return &OptionError{"WithHoldAtLeast", c.terms.AtLeast, fmt.Sprintf("must not be longer than the fixed lease of %v", c.terms.TTL)}
	}
	for _, other := range []struct {
		option string
		given  bool
	}{{"WithFixedLease", c.terms.Fixed}, {"WithHoldAtLeast", c.terms.AtLeast != 0}, {"WithReplicas", c.terms.Acks != nil}} {
		if c.terms.Linger != 0 && other.given {
			return &OptionError{"WithLinger", c.terms.Linger, "must not be given together with " + other.option}
		}
	}
	if c.terms.Acks != nil && c.terms.Acks.Timeout > c.terms.TTL/2 {
		return &OptionError{"WithReplicas", c.terms.Acks.Timeout, fmt.Sprintf("must not be more than half of the lease of %v", c.terms.TTL)}
	}
	return nil
}

// checkIdle reports an idle time that is bad for a semaphore.
func (c *lockConfig) checkIdle() error {
	if c.terms.Idle != 0 && c.terms.Idle < c.terms.TTL {
		return &OptionError{"WithIdleTTL", c.terms.Idle, fmt.Sprintf("must not be shorter than the lease of %v", c.terms.TTL)}
	}
	return nil
}

// with returns c with the options of the named lock.
func (c *lockConfig) with(name string, opts []LockOption) (*lockConfig, error) {
	own := *c
	for i, o := range opts {
		if o == nil {
			return c, &OptionError{"LockOption", nil, fmt.Sprintf("option %d of lock %s is nil", i+1, wire.Quote(name))}
		}
		o.applyLock(&own)
	}
	err := own.check()
	if err == nil && (own.terms.Permits != 0 || own.terms.Idle != c.terms.Idle) { // that of New does not count for other kinds
		err = own.checkIdle()
	}
	if err != nil {
		return c, err
	}
	return &own, nil
}

// take is a method of a lock: Lock or, if once, TryLock.
func (h *handle) take(ctx context.Context, call string, once bool) (*Lease, error) {
	if err := checkCall(ctx, call, h); err != nil {
		return nil, err
	}
	if h.err != nil {
		return nil, h.refused(ctx)
	}
	if !once {
		var over context.CancelFunc
		ctx, over = h.waiting(ctx)
		defer over()
	}
	lease, err := h.lock.Take(ctx, once)
	return (*Lease)(lease), err
}

// refused is the error of each call if the name or an option is bad.
func (h *handle) refused(ctx context.Context) error {
	_, op := h.lock.Observe(ctx)
	engine.Observed(op, nil, h.err)
	return h.err
}

// takeWhole is take of several locks together. how takes them.
func (h *handle) takeWhole(ctx context.Context, call string, once bool, how func(ctx, trace context.Context) (*engine.Lease, error)) (*Lease, error) {
	if err := checkCall(ctx, call, h); err != nil {
		return nil, err
	}
	if h.err != nil {
		return nil, h.refused(ctx)
	}
	ctx, op := h.lock.Observe(ctx)
	if !once {
		var over context.CancelFunc
		ctx, over = h.waiting(ctx)
		defer over()
	}
	lease, err := how(ctx, op.Trace())
	engine.Observed(op, lease, err)
	return (*Lease)(lease), err
}

// waiting is ctx for a wait, which WithWait bounds. over must be called after it.
func (h *handle) waiting(ctx context.Context) (_ context.Context, over context.CancelFunc) {
	if h.wait == 0 {
		return ctx, func() {}
	}
	return context.WithTimeoutCause(ctx, h.wait, errWaitOver)
}

var errWaitOver = errors.New("the time that WithWait allows is over")

// takeAsync is a method of a lock: LockAsync.
func (h *handle) takeAsync(ctx context.Context, call string) <-chan Result {
	result := make(chan Result, 1)
	switch err := checkCall(ctx, call, h); {
	case err != nil:
		result <- Result{Err: err}
	case h.err != nil:
		result <- Result{Err: h.err}
	default:
		ctx, over := h.waiting(ctx)
		h.lock.ObtainAsync(ctx, func(l *engine.Lease, err error) {
			result <- Result{(*Lease)(l), err}
			over()
		})
	}
	return result
}

// checkCall refuses a call of a lock's method before anything is done or sent: h is nil, or of no manager, or ctx is nil.
func checkCall(ctx context.Context, call string, h *handle) error {
	if ctx != nil && h.made() {
		return nil
	}
	return badCall(ctx, call, h)
}

// made reports whether a Manager has made the lock: it is not nil, nor a zero value, nor of a nil Manager.
func (h *handle) made() bool { return h != nil && h.m != nil }

// zero reports whether h is a zero value.
func (h *handle) zero() bool { return h.m == nil && h.err == nil }

func badCall(ctx context.Context, call string, h *handle) error {
	switch {
	case h == nil:
		return missing(call, "lock")
	case h.zero():
		return &OptionError{call, nil, call + ": no Manager has made this lock"}
	case h.m == nil:
		return h.err
	}
	return missing(call, "context")
}

// made reports whether New has made m: it is not nil, nor a zero value.
func (m *Manager) made() bool { return m != nil && m.engine != nil }

// check refuses a call of a manager's method.
func (m *Manager) check(ctx context.Context, call string) error {
	switch {
	case m == nil:
		return missing(call, "manager")
	case !m.made():
		return &OptionError{call, nil, call + ": New has not made this Manager"}
	case ctx == nil:
		return missing(call, "context")
	}
	return nil
}
