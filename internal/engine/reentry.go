package engine

import (
	"context"
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

func carries(ctx context.Context) bool { return ctx.Value(carriesKey{}) != nil }

// leasesKey asks a context whether it carries any lease.
type leasesKey struct{}

// CarriesLeases reports whether a look at a single lock is worth it. Under most contexts it is not.
func CarriesLeases(ctx context.Context) bool { return ctx.Value(leasesKey{}) != nil }

// heldUnder returns the innermost lease of h's name, as a lock of a family, that ctx carries and
// that is held; nil if there is none. No lock may be held: ctx may be code of the user.
func (h *Lock) heldUnder(ctx context.Context, family Kind) *Lease {
	e := h.engine.existing(family, h.Mapped)
	if e == nil {
		return nil
	}
	l, _ := ctx.Value(e).(*Lease)
	return l
}

// heldOn returns the lease of e that l is or has as a part, if it is held; else nil.
func (l *Lease) heldOn(e *entry) *Lease {
	if g := l.Several(); g != nil {
		var part *Lease
		for _, p := range g.Held() {
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

// Reenter returns one more lease of a lock that ctx, which carries leases, carries one of. It returns nil, and
// no verdict, if they are all of other locks, and a verdict if the caller would wait for itself.
func (h *Lock) Reenter(ctx context.Context) (*Lease, *Verdict) {
	if h.heldAsTheOtherKind(ctx) {
		return nil, lock.Because(WouldDeadlock, BothKinds)
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
func (h *Lock) joinHold(outer *Lease) (lease *Lease, held bool, v *Verdict) {
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

// WaitsForItself reports whether a caller under ctx would; nil: it would not.
func (h *Lock) WaitsForItself(ctx context.Context) error {
	if !CarriesLeases(ctx) {
		return nil
	}
	if h.heldAsTheOtherKind(ctx) {
		return h.engine.explain(h.Name, lock.Because(WouldDeadlock, BothKinds))
	}
	if l := h.heldUnder(ctx, h.family); l != nil && l.upgrades(h.Kind) {
		return h.engine.explain(h.Name, lock.Because(WouldDeadlock, Upgrade))
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

// upgrades reports whether an owner of l that wants a lease of kind k would wait for itself.
func (l *Lease) upgrades(k Kind) bool {
	l.mu().Lock()
	defer l.mu().Unlock()
	return l.in().Hold().Upgrades(k)
}

// WithoutOwner returns a context that hides the leases that ctx carries.
func WithoutOwner(ctx context.Context) context.Context {
	if !CarriesLeases(ctx) {
		return ctx
	}
	return withoutLeases{ctx}
}

// withoutLeases is a context that hides the leases that its parent carries.
type withoutLeases struct{ context.Context }

func (c withoutLeases) Value(key any) any {
	switch key.(type) {
	case leasesKey, *entry:
		return nil
	}
	return c.Context.Value(key)
}
