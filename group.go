package holdfast

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/lock"
)

// group is what a lease of several locks consists of: its parts, a lease of each lock. It ends when fewer are left than it
// needs; the rest is then released.
type group struct {
	lease *engine.Lease // the whole
	of    *handle       // the locks together
	need  int           // how many parts it takes

	waited bool // its caller has had to wait, whatever the parts say; not changed once one has joined

	// Redlock only, else nil: members join and leave while it is held.
	redlock *Redlock
	retake  func(part *engine.Lease) // takes the lost member again that part was of, until life ends
	life    context.Context          // carries the leases that the caller's context did, ends with the lease
	stop    context.CancelFunc       // ends life
	work    sync.WaitGroup           // goroutines that take members; begun under mu, or before the lease is held

	mu        sync.Mutex      // guards the following and the state of the lease; no other lock is held with it
	parts     []*engine.Lease // held as far as is known; once the lease has ended, those it ended with
	lost      []*engine.Lease // what Unlock settles: the parts that ended it, and those whose end was set
	held      bool            // there were enough parts
	confirmed bool            // an Unlock has returned nil
	told      bool            // a Redlock's loss is logged
}

// newGroup makes a lease of locks, which are together called whole, that so many parts are enough for.
func newGroup(whole *handle, need int) *group {
	g := &group{of: whole, need: need}
	g.lease = engine.NewSeveral(&whole.lock, g)
	return g
}

// Engine is that of the first lock.
func (g *group) Engine() *engine.Engine { return g.of.m.engine }

// Guard returns the mutex of the lease.
func (g *group) Guard() *sync.Mutex { return &g.mu }

// Held returns the parts; none once the lease has ended.
func (g *group) Held() (parts []*engine.Lease) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.lease.ErrLocked() != nil {
		return nil
	}
	return slices.Clone(g.parts)
}

// join makes p part of g. It gives p back if g has ended, or is about to: a part that was
// granted after the others lapsed must not make up for them.
func (g *group) join(p *engine.Lease) {
	var held, sound bool
	for { // g is not valid before it is held: a look from then says nothing
		sound = g.valid()
		g.mu.Lock()
		if g.held == held {
			break
		}
		held = g.held
		g.mu.Unlock()
	}
	if g.lease.ErrLocked() != nil || held && !sound {
		g.mu.Unlock()
		p.GiveBack()
		return
	}
	g.parts = append(g.parts, p)
	if !g.held {
		g.held = len(g.parts) >= g.need
		g.lease.SinceNowLocked()
		g.lease.TookLocked(p)
		if g.waited {
			g.lease.WaitedLocked()
		}
	}
	g.mu.Unlock()
	if err := p.JoinWhole(g.lease); err != nil {
		g.PartEnded(p, err) // it did so before it knew what it is part of
	}
}

// PartEnded is called when the part p has ended with err.
func (g *group) PartEnded(p *engine.Lease, err error) {
	set := p.EndWasSet() // of a lease that has ended it stays so
	g.mu.Lock()
	if g.lease.ErrLocked() != nil || !slices.Contains(g.parts, p) {
		g.mu.Unlock()
		return
	}
	rest := slices.DeleteFunc(slices.Clone(g.parts), func(x *engine.Lease) bool { return x == p })
	over := g.held && len(rest) < g.need
	set = set && g.held
	if over || set {
		g.lost = append(g.lost, p)
	}
	if over {
		if set {
			g.lost = append(g.lost, rest...)
		}
		gone := g.endLocked(err)
		g.mu.Unlock()
		gone.Announce()
		g.logLoss(err)
		for _, x := range rest {
			if set {
				x.Lapse(errors.Is(err, ErrMaxHold))
			} else {
				x.GiveBack()
			}
		}
		return
	}
	g.parts = rest
	// A part with an end of its own is not taken again: members that ended one after the other
	// would give the lease a new end each time.
	if g.retake != nil && !p.EndsByItself() {
		g.work.Go(func() { g.retake(p) })
	}
	g.mu.Unlock()
	if !set {
		p.Settle()
	}
}

// endLocked ends the lease.
func (g *group) endLocked(err error) engine.Ended {
	if g.stop != nil {
		g.stop()
	}
	fact := lock.LeaseLost
	switch {
	case errors.Is(err, ErrReleased):
		fact = lock.Released
	case errors.Is(err, ErrMaxHold):
		fact = lock.MaxHoldOver
	case errors.Is(err, ErrClosed):
		fact = lock.LeaseClosed
	}
	return g.lease.EndLocked(err, fact)
}

// dissolve gives everything back of a lease that is not handed out. It waits for no server.
func (g *group) dissolve() { g.dissolveBut(func(*engine.Lease) bool { return false }) }

// dissolveBut is Dissolve, except that it takes out and returns those parts that keep is true of.
func (g *group) dissolveBut(keep func(*engine.Lease) bool) (kept []*engine.Lease) {
	g.mu.Lock()
	if g.lease.ErrLocked() == nil {
		g.endLocked(ErrReleased)
	}
	parts := slices.Concat(g.parts, g.lost)
	g.mu.Unlock()
	for _, p := range parts { // including those that have ended, and may still be in Redis
		if !keep(p) || !p.LeaveWhole() {
			p.GiveBack()
		} else {
			kept = append(kept, p)
		}
	}
	g.work.Wait()
	return kept
}

// known returns the parts as they are now.
func (g *group) known() []*engine.Lease {
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

// valid reports whether the lease is held and enough parts are valid. A part that has ended does not count from then on, and
// not only once the lease has learned of it: another owner may have its lock already.
func (g *group) valid() bool {
	if g.lease.Err() != nil {
		return false
	}
	n := 0
	for _, p := range g.known() {
		if p.Valid() {
			n++
		}
	}
	return n >= g.need
}

// Calls for all parts at the same time.

// failure is how a call for one part ended.
type failure struct {
	part *engine.Lease
	err  error
}

// unlock releases all parts at the same time. Called again, it waits for their releases as
// well, until one call has returned nil. A Redlock is released when a majority is;
// the others go on in the background.
func (g *group) unlock(ctx context.Context) error {
	at := time.Now()
	g.mu.Lock()
	switch err := g.lease.ErrLocked(); {
	case g.confirmed:
		g.mu.Unlock()
		return newLockError(ErrNotHeld, g.lease.Name())
	case err != nil && !errors.Is(err, ErrReleased):
		lost := g.lost
		g.lost = nil
		g.mu.Unlock()
		for _, p := range lost {
			p.Settle()
		}
		g.work.Wait()
		return err
	}
	var gone engine.Ended
	if g.lease.ErrLocked() == nil {
		gone = g.endLocked(ErrReleased)
	}
	parts, lost := g.parts, g.lost
	g.lost = nil
	g.mu.Unlock()
	begun := make(map[*engine.Lease]func() error, len(parts))
	for _, p := range parts { // before anything that may take time: all were valid if the lease was
		begun[p] = beginUnlock(ctx, p, at)
	}
	gone.Announce()
	for _, p := range lost {
		p.Settle()
	}
	g.work.Wait()

	err := g.each(parts, func(p *engine.Lease) error {
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
		return newLockError(ErrNotHeld, g.lease.Name())
	}
	g.confirmed = true
	return nil
}

// extend prolongs all parts at the same time.
func (g *group) extend(ctx context.Context, d time.Duration) error {
	if err := (*Lease)(g.lease).stillHeld(); err != nil {
		return err
	}
	err := g.each(g.known(), func(p *engine.Lease) error { return (*Lease)(p).Extend(ctx, d) })
	if ended := (*Lease)(g.lease).stillHeld(); ended != nil {
		return ended
	}
	return err
}

// logLoss writes once that a Redlock was lost, if it ended with err because of that: it outlives the loss of a
// minority, so the lines of its members do not say so. No lock may be held.
func (g *group) logLoss(err error) {
	var lost *LostError
	if g.redlock == nil || !errors.As(err, &lost) {
		return
	}
	g.mu.Lock()
	first := !g.told
	g.told = true
	g.mu.Unlock()
	if first {
		g.Engine().Journal.Lost(g.lease.Name(), string(lost.Reason))
	}
}

// each calls do for all parts at the same time, which takes a second at most. It returns
// nil as soon as as many calls as are needed have succeeded, else all errors; but not those of parts
// that have ended, as long as the others are enough: then the lease has not.
func (g *group) each(parts []*engine.Lease, do func(*engine.Lease) error) error {
	results := make(chan failure, len(parts))
	for _, p := range parts {
		go func() { results <- failure{p, do(p)} }()
	}
	done := 0
	var failed, ended []failure
	for range parts {
		switch r := <-results; {
		case errors.Is(r.err, ErrLeaseLost), errors.Is(r.err, ErrMaxHold), errors.Is(r.err, ErrClosed):
			ended = append(ended, r)
		case r.err != nil:
			failed = append(failed, r)
		default:
			if done++; done == g.need {
				return nil
			}
		}
	}
	if len(parts)-len(ended) < g.need {
		failed = append(failed, ended...)
	}
	if len(failed) == 0 {
		return nil
	}
	if g.redlock != nil {
		return g.redlock.join(failed)
	}
	all := make([]error, len(failed)) // each names its lock
	for i, f := range failed {
		all[i] = f.err
	}
	return errors.Join(all...)
}
