package holdfast

import (
	"context"
	"time"

	"github.com/holdfast-go/holdfast/internal/retry"
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
func (h *handle) heldUnder(ctx context.Context, family kind) *Lease {
	e := h.m.existing(family, h.mapped)
	if e == nil {
		return nil
	}
	l, _ := ctx.Value(e).(*Lease)
	return l
}

// heldOn returns the lease of e that l is or has as a part, if it is held; else nil.
func (l *Lease) heldOn(e *entry) *Lease {
	if g := l.group; g != nil {
		g.mu.Lock()
		var part *Lease
		for _, p := range g.parts {
			if l.err == nil && p.hold.entry == e {
				part = p
			}
		}
		g.mu.Unlock()
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
func (l *Lease) heldLocked(now time.Time) bool { return l.err == nil && now.Before(l.deadlineLocked()) }

// reenter returns one more lease of a lock that ctx, which carries leases, carries one of. It returns nil, and
// no verdict, if they are all of other locks, and a verdict if the caller would wait for itself.
func (h *handle) reenter(ctx context.Context) (*Lease, *verdict) {
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
func (h *handle) joinHold(outer *Lease) (lease *Lease, held bool, v *verdict) {
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
func (h *handle) waitsForItself(ctx context.Context) *verdict {
	if !carriesLeases(ctx) {
		return nil
	}
	if h.heldAsTheOtherKind(ctx) {
		return because(wouldDeadlock, bothKinds)
	}
	if h.kind != writeKind {
		return nil
	}
	if l := h.heldUnder(ctx, h.family); l != nil && l.reads() {
		return because(wouldDeadlock, upgrade)
	}
	return nil
}

// heldAsTheOtherKind reports whether ctx carries a lease of the mutex while h is the fair lock of
// that name, or the other way round: they share a key and no entry, so the caller would wait for
// itself.
func (h *handle) heldAsTheOtherKind(ctx context.Context) bool {
	switch h.family {
	case mutexKind:
		return h.heldUnder(ctx, fairKind) != nil
	case fairKind:
		return h.heldUnder(ctx, mutexKind) != nil
	}
	return false
}

// reads reports whether the hold of l is of the read side only.
func (l *Lease) reads() bool {
	l.mu().Lock()
	defer l.mu().Unlock()
	return l.hold.kind == readKind
}

// reenter returns a lease of the members that ctx carries leases of, if they are a majority: no
// member is asked. It returns nil if they are not.
func (l *Redlock) reenter(ctx context.Context) *Lease {
	if l.whole.err != nil || ctx.Err() != nil || !carriesLeases(ctx) {
		return nil
	}
	whole := newGroupLease(&l.whole, l.quorum())
	g := whole.group
	g.life, g.stop = context.WithCancel(context.WithoutCancel(ctx))
	g.retake = l.follow
	var missing []*handle
	for _, h := range l.members {
		if part, _ := h.reenter(ctx); part != nil { // a verdict is for a round to count
			whole.join(part)
		} else {
			missing = append(missing, h)
		}
	}
	if g.count() < g.need || !whole.Valid() {
		whole.dissolve()
		return nil
	}
	for _, h := range missing {
		g.work.Go(func() { l.follow(whole, h) })
	}
	return whole
}

// follow re-enters a member that is missing in a lease taken by re-entry once the outer lease
// has it. Asking for it would compete with the outer lease, which asks as well.
func (l *Redlock) follow(whole *Lease, h *handle) {
	pauses := retry.New()
	for sleep(whole.group.life, pauses.NextBackOff()) {
		if part, _ := h.reenter(whole.group.life); part != nil {
			whole.join(part)
			return
		}
	}
}

// WithoutOwner returns a copy of ctx that carries no lease. A Lock under it competes with the locks that
// are held under ctx, instead of re-entering them.
//
// Use it if the work under a lock fans out to goroutines that must exclude each other on that same
// lock. On all other locks they exclude each other without it. WithoutOwner panics with an
// *[OptionError] if ctx is nil.
func WithoutOwner(ctx context.Context) context.Context {
	if ctx == nil {
		panic(missing("WithoutOwner", "context"))
	}
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
