package engine

import "context"

// Context is a context derived from parent that carries the lease and ends with it.
func (l *Lease) Context(parent context.Context) context.Context {
	return &leaseContext{parent, l, l.endWith(parent)}
}

// leaseContext is what Lease.Context returns. Only the caller that was given it keeps it: the
// lease and the contexts that the parent derives from know its end, which it shares with others.
type leaseContext struct {
	context.Context // the parent: values and deadline
	lease           *Lease
	end             context.Context
}

func (c *leaseContext) Done() <-chan struct{} { return c.end.Done() }

func (c *leaseContext) Err() error { return c.end.Err() }

func (c *leaseContext) Value(key any) any {
	switch k := key.(type) {
	case carriesKey, leasesKey:
		return c.lease
	case *entry:
		if l := c.lease.heldOn(k); l != nil {
			return l
		}
	default:
		if key == endKey {
			return c.end.Value(key) // with it contexts that derive from c end, and its cause is c's
		}
	}
	return c.Context.Value(key)
}

// sharedEnd is the end of those contexts of a lease whose parents have one Done channel, and so
// end together.
type sharedEnd struct {
	ctx    context.Context // derived from the first of the parents
	cancel context.CancelCauseFunc
	unhook func() bool // stops listening to that parent; nil: it never ends
	over   bool        // it has ended; guarded as more.contexts is
}

// endWith returns a context that ends with l or with parent. It is made while no lock is held:
// parent may be code of the user.
func (l *Lease) endWith(parent context.Context) context.Context {
	done := parent.Done()
	l.mu().Lock()
	x := l.moreLocked()
	s := x.contexts[done]
	l.mu().Unlock()
	if s != nil {
		return s.ctx
	}
	s = new(sharedEnd)
	s.ctx, s.cancel = context.WithCancelCause(parent)
	if done != nil {
		// A long lease that gives contexts to many short requests must not keep them.
		s.unhook = context.AfterFunc(parent, func() {
			l.mu().Lock()
			s.over = true
			delete(x.contexts, done)
			l.mu().Unlock()
		})
	}
	l.mu().Lock()
	err, other := l.errLocked(), x.contexts[done]
	// Parents that had ended before the first call of Done share a channel, and no end.
	if err == nil && other == nil && !s.over && s.ctx.Err() == nil {
		if x.contexts == nil {
			x.contexts = make(map[<-chan struct{}]*sharedEnd)
		}
		x.contexts[done] = s
	}
	l.mu().Unlock()
	if err != nil || other != nil {
		s.end(err)
	}
	if other != nil { // made at the same moment
		return other.ctx
	}
	return s.ctx
}

func (s *sharedEnd) end(cause error) {
	if s.unhook != nil {
		s.unhook()
	}
	s.cancel(cause)
}

// endKey is what package context asks a context for, to find what it ends with. That is not
// documented there. If it ever changes, context.Cause of a lease's context does not say why the
// lease ended, and TestLease_ContextsOfOneEnd fails.
var endKey = func() (key any) {
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	_ = context.Cause(askedContext{ended, &key})
	return key
}()

// askedContext notes the key that Value is called with.
type askedContext struct {
	context.Context
	key *any
}

func (c askedContext) Value(key any) any {
	*c.key = key
	return c.Context.Value(key)
}
