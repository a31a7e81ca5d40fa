package holdfast

import (
	"context"
	"time"
)

// A context carries leases: all those whose Lease.Context it descends from. A call re-enters a
// lock if one of them is a lease of that very lock and still held. Leases of other locks change
// nothing.
//
// Each lock is a context key of its own: the entry, which stays the same while a lease of the
// lock is held. So a context that was merged from several by its own Value method, or that copies
// the values of another, answers for each lock by itself, and nested contexts need no list.

// leasesKey asks a context whether it carries any lease.
type leasesKey struct{}

// carriesLeases reports whether a look at a single lock is worth it. Under most contexts it is not.
func carriesLeases(ctx context.Context) bool { return ctx.Value(leasesKey{}) != nil }

// heldUnder returns the innermost lease of h's name, as a lock of a family, that ctx carries and
// that is held; nil if there is none. No lock may be held: ctx may be code of the user.
func (h *engineLock) heldUnder(ctx context.Context, family kind) *engineLease {
	e := h.m.existing(family, h.mapped)
	if e == nil {
		return nil
	}
	l, _ := ctx.Value(e).(*engineLease)
	return l
}

// heldOn returns the lease of e that l is or has as a part, if it is held; else nil.
func (l *engineLease) heldOn(e *entry) *engineLease {
	if g := l.group; g != nil {
		var part *engineLease
		for _, p := range g.Held(l) {
			if p.hold.entry == e {
				part = p
			}
		}
		if part == nil {
			return nil
		}
		l = part
	}
	if l.hold.entry != e {
		return nil
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if !l.heldLocked(time.Now()) {
		return nil
	}
	return l
}

// heldLocked reports whether a lease of one lock is held. One whose end has passed is not, even
// if its timers have not run yet.
func (l *engineLease) heldLocked(now time.Time) bool {
	return l.err == nil && now.Before(l.deadlineLocked())
}

// reenter returns one more lease of a lock that ctx, which carries leases, carries one of. It returns nil, and
// no verdict, if they are all of other locks, and a verdict if the caller would wait for itself.
func (h *engineLock) reenter(ctx context.Context) (*engineLease, *verdict) {
	if h.heldAsTheOtherKind(ctx) {
		return nil, because(wouldDeadlock, bothKinds)
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
func (h *engineLock) joinHold(outer *engineLease) (lease *engineLease, held bool, v *verdict) {
	e := outer.hold.entry
	e.mu.Lock()
	defer e.mu.Unlock()
	now := time.Now()
	if !outer.heldLocked(now) {
		return nil, false, nil
	}
	lease, v = e.reenterLocked(outer, h, now)
	return lease, true, v
}

// waitsForItself reports whether a caller under ctx would; nil: it would not.
func (h *engineLock) waitsForItself(ctx context.Context) error {
	if !carriesLeases(ctx) {
		return nil
	}
	if h.heldAsTheOtherKind(ctx) {
		return h.m.explain(h.name, because(wouldDeadlock, bothKinds))
	}
	if h.kind != writeKind {
		return nil
	}
	if l := h.heldUnder(ctx, h.family); l != nil && l.reads() {
		return h.m.explain(h.name, because(wouldDeadlock, upgrade))
	}
	return nil
}

// heldAsTheOtherKind reports whether ctx carries a lease of the mutex while h is the fair lock of
// that name, or the other way round: they share a key and no entry, so the caller would wait for
// itself.
func (h *engineLock) heldAsTheOtherKind(ctx context.Context) bool {
	switch h.family {
	case mutexKind:
		return h.heldUnder(ctx, fairKind) != nil
	case fairKind:
		return h.heldUnder(ctx, mutexKind) != nil
	}
	return false
}

// reads reports whether the hold of l is of the read side only.
func (l *engineLease) reads() bool {
	l.mu().Lock()
	defer l.mu().Unlock()
	return l.hold.kind == readKind
}

// withoutOwner returns a context that hides the leases that ctx carries.
func withoutOwner(ctx context.Context) context.Context {
	if !carriesLeases(ctx) {
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
