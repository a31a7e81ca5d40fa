package engine

import (
	"context"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast/internal/lock"
)

// A context carries leases: all those whose Lease.Context it descends from. A call re-enters a
// lock if one of them is a lease of that very lock and still held. Leases of other locks change
// nothing.
//
// Each lock is a context key of its own: the entry, which stays the same while a lease of the
// lock is held. So a context that was merged from several by its own Value method, or that copies
// the values of another, answers for each lock by itself, and nested contexts need no list.

// carriesKey asks a context whether it carries anything: a lease or a label. Most contexts carry nothing, and one look shows
// that.
type carriesKey struct{}

// leasesKey asks a context whether it carries any lease.
type leasesKey struct{}

// carriesLeases reports whether a look at a single lock is worth it. Under most contexts it is not.
func carriesLeases(ctx context.Context) bool { return ctx.Value(leasesKey{}) != nil }

// heldUnder returns the innermost lease of h's name, as a lock of a family, that ctx carries and
// that is held; nil if there is none. No lock may be held: ctx may be code of the user.
func (h *Lock) heldUnder(ctx context.Context, family lock.Kind) *Lease {
	e := h.engine.existing(family, h.Mapped)
	if e == nil {
		return nil
	}
	l, _ := ctx.Value(e).(*Lease)
	return l
}

// heldOn returns the lease of e that l is or has as a part, if it is held; else nil.
func (l *Lease) heldOn(e *entry) *Lease {
	if g := l.several(); g != nil {
		var part *Lease
		for _, p := range g.heldParts() {
			if p.entry() == e {
				part = p
			}
		}
		if part == nil {
			return nil
		}
		l = part
	}
	if l.entry() != e {
		return nil
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if !l.in().Held(time.Now()) {
		return nil
	}
	return l
}

// reenter returns one more lease of a lock that ctx, which carries leases, carries one of. It returns nil, and
// no verdict, if they are all of other locks, and a verdict if the caller would wait for itself.
func (h *Lock) reenter(ctx context.Context) (*Lease, *lock.Verdict) {
	switch {
	case h.heldAsTheOtherKind(ctx):
		return nil, lock.Because(lock.WouldDeadlock, lock.BothKinds)
	case !h.Kind.Reenters():
		return nil, h.wantsOwnPermits(ctx)
	}
	for {
		outer := h.heldUnder(ctx, h.family)
		if outer == nil {
			return nil, nil
		}
		if lease, held, v := h.joinHold(outer); held {
			return lease, v
		}
		// It has ended since: ctx may carry one further out.
	}
}

// joinHold puts one more lease on the hold of outer. It reports false if outer is not held.
func (h *Lock) joinHold(outer *Lease) (lease *Lease, held bool, v *lock.Verdict) {
	e := outer.entry()
	e.mu.Lock()
	defer e.mu.Unlock()
	now := time.Now()
	by := h.by()
	l, held, v := e.lock.Reenter(outer.in(), &by, now, now.Sub(e.engine.Epoch))
	if l == nil {
		return nil, held, v
	}
	lease = (*Lease)(l)
	lease.setLabelLocked(outer.labelLocked())
	h.Class.granted(l.Kind(), l.Mode())
	return lease, true, nil
}

// waitsForItself reports whether a caller under ctx would; nil: it would not.
func (h *Lock) waitsForItself(ctx context.Context) error {
	if !carriesLeases(ctx) {
		return nil
	}
	if h.heldAsTheOtherKind(ctx) {
		return h.engine.explain(h.Name, lock.Because(lock.WouldDeadlock, lock.BothKinds))
	}
	if !h.Kind.Reenters() {
		return h.engine.explain(h.Name, h.wantsOwnPermits(ctx))
	}
	if l := h.heldUnder(ctx, h.family); l != nil && l.upgrades(h.Kind) {
		return h.engine.explain(h.Name, lock.Because(lock.WouldDeadlock, lock.Upgrade))
	}
	return nil
}

// heldAsTheOtherKind reports whether ctx carries a lease of the mutex while h is the fair lock of
// that name, or the other way round: they share a key and no entry, so the caller would wait for
// itself.
func (h *Lock) heldAsTheOtherKind(ctx context.Context) bool {
	twin := families[h.family].twin
	return twin != h.family && h.heldUnder(ctx, twin) != nil
}

// wantsOwnPermits is the verdict for a caller of a semaphore whose context carries so many of its permits that it would wait for
// itself; nil: it would not.
func (h *Lock) wantsOwnPermits(ctx context.Context) *lock.Verdict {
	c := &carried{of: h.engine.existing(h.family, h.Mapped)}
	if c.of != nil {
		ctx.Value(c)
	}
	if c.permits > 0 && c.permits+h.Terms.Permits > h.Terms.Total {
		return lock.Because(lock.WouldDeadlock, lock.OwnPermits)
	}
	return nil
}

// upgrades reports whether an owner of l that wants a lease of kind k would wait for itself.
func (l *Lease) upgrades(k lock.Kind) bool {
	l.mu().Lock()
	defer l.mu().Unlock()
	return l.in().Hold().Upgrades(k)
}

// carried asks a context for the names of the locks whose leases it carries and that are held.
type carried struct {
	names   []string
	of      *entry // counts the permits of this one
	permits int
}

// carriedBy returns those names, of the innermost lease first; each once. No lock may be held: ctx may be code of the user.
func carriedBy(ctx context.Context) []string {
	if ctx == nil {
		return nil
	}
	c := new(carried)
	ctx.Value(c)
	return c.names
}

func (c *carried) add(l *Lease) {
	leases := []*Lease{l}
	if g := l.several(); g != nil {
		leases = g.heldParts()
	}
	for _, l := range leases {
		if l.heldOn(l.entry()) == nil {
			continue
		}
		if l.entry() == c.of {
			c.permits += l.Permits()
		}
		if !slices.Contains(c.names, l.Name()) {
			c.names = append(c.names, l.Name())
		}
	}
}

// WithoutOwner returns a context that hides the leases that ctx carries.
func WithoutOwner(ctx context.Context) context.Context {
	if !carriesLeases(ctx) {
		return ctx
	}
	return withoutLeases{ctx}
}

// withoutLeases is a context that hides the leases that its parent carries.
type withoutLeases struct{ context.Context }

func (c withoutLeases) Value(key any) any {
	switch key.(type) {
	case leasesKey, *entry, *carried:
		return nil
	}
	return c.Context.Value(key)
}

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
	case *carried:
		k.add(c.lease) // the parent adds what it carries
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
