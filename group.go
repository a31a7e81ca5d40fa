package holdfast

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/internal/engine"
)

// group is what a lease of several locks consists of: its parts, a lease of each lock. It ends when fewer are left than it needs; the rest is then released.
type group struct {
	as   *handle // the locks together
	need int     // how many parts it takes

	// Redlock only, else nil: members join and leave while it is held.
	members []*handle                // in their order
	retake  func(whole, part *Lease) // takes the lost member again that part was of, until life ends
	life    context.Context          // carries the leases that the caller's context did, ends with the lease
	stop    context.CancelFunc       // ends life
	work    sync.WaitGroup           // who takes members; begun under mu, or before the lease is held

	mu        sync.Mutex // guards the following and the state of the lease; no other lock is held with it
	parts     []*Lease   // held as far as is known; once the lease has ended, those it ended with
	lost      []*Lease   // what Unlock settles: the parts that ended it, and those whose end was set
	held      bool       // there were enough parts
	confirmed bool       // an Unlock has returned nil
	told      bool       // a Redlock's loss is logged
}

// newGroupLease makes a lease that parts join.
func newGroupLease(as *handle, need int) *Lease {
	return (*Lease)(engine.NewSeveral(&as.lock, &group{as: as, need: need}))
}

// Engine is that of the first lock.
func (g *group) Engine() *engine.Engine { return g.as.m.engine }

// Guard returns the mutex of the lease.
func (g *group) Guard() *sync.Mutex { return &g.mu }

// Held returns the parts; none once the lease has ended.
func (g *group) Held(whole *engine.Lease) (parts []*engine.Lease) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if whole.ErrLocked() == nil {
		for _, p := range g.parts {
			parts = append(parts, p.inner())
		}
	}
	return parts
}

// PartEnded is called when the part p of whole has ended with err.
func (g *group) PartEnded(whole, p *engine.Lease, err error) {
	(*Lease)(whole).partEnded((*Lease)(p), err)
}

// join makes p part of l. It gives p back if l has ended, or is about to: a part that was
// granted after the others lapsed must not make up for them.
func (l *Lease) join(p *Lease) {
	g := l.together()
	var held, sound bool
	for { // l is not valid before it is held: a look from then says nothing
		sound = l.Valid()
		g.mu.Lock()
		if g.held == held {
			break
		}
		held = g.held
		g.mu.Unlock()
	}
	if l.inner().ErrLocked() != nil || held && !sound {
		g.mu.Unlock()
		p.inner().GiveBack()
		return
	}
	g.parts = append(g.parts, p)
	if !g.held {
		g.held = len(g.parts) >= g.need
		l.inner().SinceNowLocked()
		l.inner().TookLocked(p.inner())
	}
	g.mu.Unlock()
	if err := p.inner().JoinWhole(l.inner()); err != nil {
		l.partEnded(p, err) // it did so before it knew what it is part of
	}
}

// partEnded is called when the part p has ended with err.
func (l *Lease) partEnded(p *Lease, err error) {
	g := l.together()
	g.mu.Lock()
	if l.inner().ErrLocked() != nil || !slices.Contains(g.parts, p) {
		g.mu.Unlock()
		return
	}
	rest := slices.DeleteFunc(slices.Clone(g.parts), func(x *Lease) bool { return x == p })
	over, set := g.held && len(rest) < g.need, g.held && p.inner().EndWasSet()
	if over || set {
		g.lost = append(g.lost, p)
	}
	if over {
		if set {
			g.lost = append(g.lost, rest...)
		}
		gone := l.endGroupLocked(err)
		g.mu.Unlock()
		gone.Announce()
		g.logLoss(err)
		for _, x := range rest {
			if set {
				x.inner().Lapse(errors.Is(err, ErrMaxHold))
			} else {
				x.inner().GiveBack()
			}
		}
		return
	}
	g.parts = rest
	// What has an end of its own is not taken again: members that ended one after the other
	// would give the lease a new end each time.
	if g.retake != nil && !p.inner().EndsByItself() {
		g.work.Go(func() { g.retake(l, p) })
	}
	g.mu.Unlock()
	if !set {
		p.inner().Settle()
	}
}

// endGroupLocked ends a lease of several locks.
func (l *Lease) endGroupLocked(err error) engine.Ended {
	if g := l.together(); g.stop != nil {
		g.stop()
	}
	return l.inner().EndLocked(err, endOf(err))
}

// dissolve gives everything back of a lease that is not handed out. It waits for no server.
func (l *Lease) dissolve() { l.dissolveBut(func(*Lease) bool { return false }) }

// dissolveBut is dissolve, except that it takes out and returns those parts that keep is true of.
func (l *Lease) dissolveBut(keep func(*Lease) bool) (kept []*Lease) {
	g := l.together()
	g.mu.Lock()
	if l.inner().ErrLocked() == nil {
		l.endGroupLocked(ErrReleased)
	}
	parts := slices.Concat(g.parts, g.lost)
	g.mu.Unlock()
	for _, p := range parts { // also those that have ended, and may still be in Redis
		if !keep(p) || !p.inner().Detach() {
			p.inner().GiveBack()
		} else {
			kept = append(kept, p)
		}
	}
	g.work.Wait()
	return kept
}

// count is how many parts l has.
func (g *group) count() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.parts)
}

// known returns the parts as they are now.
func (g *group) known() []*Lease {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Clone(g.parts)
}

// deadline returns until when enough parts are valid, or were if the lease has ended.
func (g *group) deadline() time.Time {
	parts := g.known()
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

// valid reports whether enough parts are. One that has ended does not count from then on, and not
// only once the lease has learned of it: its lock may be somebody else's already.
func (g *group) valid() bool {
	n := 0
	for _, p := range g.known() {
		if p.Valid() {
			n++
		}
	}
	return n >= g.need
}

// unlock releases all parts at the same time. Called again, it waits for their releases as
// well, until one call has been told of the success. A Redlock is released when a majority is;
// the others go on in the background.
func (g *group) unlock(ctx context.Context, l *Lease) error {
	at := time.Now()
	g.mu.Lock()
	switch err := l.inner().ErrLocked(); {
	case g.confirmed:
		g.mu.Unlock()
		return newLockError(ErrNotHeld, l.Name())
	case err != nil && err != ErrReleased:
		lost := g.lost
		g.lost = nil
		g.mu.Unlock()
		for _, p := range lost {
			p.inner().Settle()
		}
		g.work.Wait()
		return err
	}
	var gone engine.Ended
	if l.inner().ErrLocked() == nil {
		gone = l.endGroupLocked(ErrReleased)
	}
	parts, lost := g.parts, g.lost
	g.lost = nil
	g.mu.Unlock()
	begun := make(map[*Lease]func() error, len(parts))
	for _, p := range parts { // before anything that may take time: all were valid if the lease was
		begun[p] = p.beginPart(ctx, at)
	}
	gone.Announce()
	for _, p := range lost {
		p.inner().Settle()
	}
	g.work.Wait()

	err := g.each(parts, func(p *Lease) error {
		err := begun[p]()
		if errors.Is(err, ErrNotHeld) {
			return nil // by another Unlock
		}
		return err
	})
	if err != nil {
		g.logLoss(err)
		return err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.confirmed {
		return newLockError(ErrNotHeld, l.Name())
	}
	g.confirmed = true
	return nil
}

// beginPart begins the Unlock of one of several locks. What it returns waits for the answer.
func (l *Lease) beginPart(ctx context.Context, at time.Time) func() error {
	_, op := l.observe(ctx, part)
	wait := l.inner().BeginUnlock(at, op.Trace())
	return func() error {
		err := wait()
		unlocked(op, err)
		return err
	}
}

// extend prolongs all parts at the same time.
func (g *group) extend(ctx context.Context, l *Lease, d time.Duration) error {
	if err := l.stillHeld(); err != nil {
		return err
	}
	err := g.each(g.known(), func(p *Lease) error { return p.Extend(ctx, d) })
	if ended := l.stillHeld(); ended != nil {
		return ended
	}
	return err
}

// each calls do for all parts at the same time, which takes a second at most. It returns
// nil as soon as as many calls as are needed have succeeded, else all errors; but not those of parts
// that have ended, as long as the others are enough: then the lease has not.
func (g *group) each(parts []*Lease, do func(*Lease) error) error {
	results := make(chan partError, len(parts))
	for _, p := range parts {
		go func() { results <- partError{p, do(p)} }()
	}
	done := 0
	var errs, ended []partError
	for range parts {
		switch r := <-results; {
		case errors.Is(r.err, ErrLeaseLost), errors.Is(r.err, ErrMaxHold), errors.Is(r.err, ErrClosed):
			ended = append(ended, r)
		case r.err != nil:
			errs = append(errs, r)
		default:
			if done++; done == g.need {
				return nil
			}
		}
	}
	if len(parts)-len(ended) < g.need {
		errs = append(errs, ended...)
	}
	return g.joined(errs)
}

// logLoss writes once that a Redlock was lost, if it ended with err because of that: it outlives the loss of a
// minority, so the lines of its members do not say so. No lock may be held.
func (g *group) logLoss(err error) {
	lost := (*LostError)(nil)
	if g.retake == nil || !errors.As(err, &lost) {
		return
	}
	g.mu.Lock()
	first := !g.told
	g.told = true
	g.mu.Unlock()
	if first {
		g.as.m.engine.Journal.Lost(g.as.lock.Name, string(lost.Reason))
	}
}
