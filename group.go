package holdfast

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"
)

// group is what a lease of several locks stands on: a lease of each of them, all of one
// owner. It ends when fewer are left than it needs, and the others are then released.
type group struct {
	need   int                      // how many parts it takes
	regain func(whole, lost *Lease) // Redlock: a part was lost and may be taken again; nil: it may not

	mu    sync.Mutex // guards parts and the state of the lease; behind no other lock, before none
	parts []*Lease   // held, as far as is known
}

// newGroupLease makes the lease on top of parts. If one of them has ended since it was
// granted, so may the lease have when it is returned.
func newGroupLease(as *handle, parts []*Lease, need int, o *owner, regain func(whole, lost *Lease)) *Lease {
	l := &Lease{name: as.name, kind: as.kind, owner: o, group: &group{need: need, regain: regain}}
	for _, p := range parts {
		l.addPart(p)
	}
	for _, p := range parts {
		if err := p.Err(); err != nil {
			l.partEnded(p, err) // before it knew what it is part of
		}
	}
	return l
}

// addPart makes p part of l; it reports false if l has ended.
func (l *Lease) addPart(p *Lease) bool {
	p.mu().Lock()
	p.whole = l
	p.mu().Unlock()
	l.group.mu.Lock()
	defer l.group.mu.Unlock()
	if l.err != nil {
		return false
	}
	l.group.parts = append(l.group.parts, p)
	return true
}

// partEnded is told of the end of a part, once or twice.
func (l *Lease) partEnded(p *Lease, err error) {
	g := l.group
	g.mu.Lock()
	n := len(g.parts)
	g.parts = slices.DeleteFunc(g.parts, func(x *Lease) bool { return x == p })
	if l.err != nil || len(g.parts) == n {
		g.mu.Unlock()
		return
	}
	if len(g.parts) >= g.need {
		g.mu.Unlock()
		if g.regain != nil {
			g.regain(l, p)
		}
		return
	}
	gone := l.endLocked(err)
	rest := g.parts
	g.parts = nil
	g.mu.Unlock()
	gone.announce()
	for _, x := range rest {
		x.giveBack()
	}
}

// deadline is until when enough parts are claimed.
func (g *group) deadline() time.Time {
	g.mu.Lock()
	parts := slices.Clone(g.parts)
	g.mu.Unlock()
	if len(parts) < g.need {
		return time.Time{}
	}
	ends := make([]time.Time, len(parts))
	for i, p := range parts {
		ends[i] = p.Deadline()
	}
	slices.SortFunc(ends, func(a, b time.Time) int { return b.Compare(a) })
	return ends[g.need-1]
}

// unlock releases all parts at the same time. A Redlock is released when a majority
// is; the others go on in the background.
func (g *group) unlock(ctx context.Context, l *Lease) error {
	g.mu.Lock()
	switch {
	case l.err == ErrReleased:
		g.mu.Unlock()
		return newLockError(ErrNotHeld, l.name)
	case l.err != nil:
		defer g.mu.Unlock()
		return l.err
	}
	gone := l.endLocked(ErrReleased)
	parts := g.parts
	g.parts = nil
	g.mu.Unlock()
	gone.announce()

	results := make(chan error, len(parts))
	for _, p := range parts {
		go func() { results <- p.Unlock(ctx) }() // for a second at most
	}
	var errs []error
	for done := 0; done < len(parts); done++ {
		if err := <-results; err != nil {
			errs = append(errs, err)
		} else if g.regain != nil && done+1-len(errs) >= g.need {
			return nil
		}
	}
	return errors.Join(errs...)
}

// extend prolongs all parts at the same time.
func (g *group) extend(ctx context.Context, l *Lease, d time.Duration) error {
	if err := l.stillHeld(); err != nil {
		return err
	}
	g.mu.Lock()
	parts := slices.Clone(g.parts)
	g.mu.Unlock()
	results := make(chan error, len(parts))
	for _, p := range parts {
		go func() { results <- p.Extend(ctx, d) }() // for a second at most
	}
	var errs []error
	for range parts {
		if err := <-results; err != nil {
			errs = append(errs, err)
		}
	}
	if len(parts)-len(errs) >= g.need {
		return l.stillHeld()
	}
	return errors.Join(errs...)
}
