// Package several is the lease of several locks: the group that Multi and Redlock hand out, and the majority of a Redlock.
// It decides on parts, rounds and ends. Package holdfast takes the parts, observes calls and makes the errors: see Calls
// and Members.
package several

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/internal/engine"
)

// Calls is what a group needs of the package that users call.
type Calls interface {
	// Unlock begins the Unlock of a part, which is valid if it was at the time at. The function that it returns waits
	// for the answer.
	Unlock(ctx context.Context, part *engine.Lease, at time.Time) (wait func() error)
	// Extend is Extend of a part.
	Extend(ctx context.Context, part *engine.Lease, d time.Duration) error
	// Is reports whether err says a fact.
	Is(err error, fact engine.Fact) bool
	// Lost returns the reason of a lost lease, if err says that it was lost.
	Lost(err error) (reason string, lost bool)
	// Join makes the error of calls for several parts, of which there is one at least.
	Join(failures []Failure) error
}

// Failure is how a call for one part of a group ended.
type Failure struct {
	Part *engine.Lease
	Err  error
}

// Group is what a lease of several locks consists of: its parts, a lease of each lock. It ends when fewer are left than it
// needs; the rest is then released.
type Group struct {
	lease *engine.Lease // the whole
	first *engine.Engine
	calls Calls
	need  int // how many parts it takes

	waited bool // its caller has had to wait, whatever the parts say; not changed once one has joined

	// Redlock only, else nil: members join and leave while it is held.
	retake func(part *engine.Lease) // takes the lost member again that part was of, until life ends
	life   context.Context          // carries the leases that the caller's context did, ends with the lease
	stop   context.CancelFunc       // ends life
	work   sync.WaitGroup           // goroutines that take members; begun under mu, or before the lease is held

	mu        sync.Mutex      // guards the following and the state of the lease; no other lock is held with it
	parts     []*engine.Lease // held as far as is known; once the lease has ended, those it ended with
	lost      []*engine.Lease // what Unlock settles: the parts that ended it, and those whose end was set
	held      bool            // there were enough parts
	confirmed bool            // an Unlock has returned nil
	told      bool            // a Redlock's loss is logged
}

// New makes a lease that parts join. as is the locks together, and first the engine of the first of them.
func New(as *engine.Lock, first *engine.Engine, need int, calls Calls) *Group {
	g := &Group{first: first, calls: calls, need: need}
	g.lease = engine.NewSeveral(as, g)
	return g
}

// Lease returns the lease of the whole.
func (g *Group) Lease() *engine.Lease { return g.lease }

// Engine is that of the first lock.
func (g *Group) Engine() *engine.Engine { return g.first }

// Guard returns the mutex of the lease.
func (g *Group) Guard() *sync.Mutex { return &g.mu }

// Held returns the parts; none once the lease has ended.
func (g *Group) Held() (parts []*engine.Lease) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.lease.ErrLocked() != nil {
		return nil
	}
	return slices.Clone(g.parts)
}

// Join makes p part of g. It gives p back if g has ended, or is about to: a part that was
// granted after the others lapsed must not make up for them.
func (g *Group) Join(p *engine.Lease) {
	var held, sound bool
	for { // g is not valid before it is held: a look from then says nothing
		sound = g.Valid()
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
func (g *Group) PartEnded(p *engine.Lease, err error) {
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
				x.Lapse(g.calls.Is(err, engine.MaxHoldOver))
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
func (g *Group) endLocked(err error) engine.Ended {
	if g.stop != nil {
		g.stop()
	}
	for _, f := range []engine.Fact{engine.Released, engine.MaxHoldOver, engine.LeaseClosed} {
		if g.calls.Is(err, f) {
			return g.lease.EndLocked(err, f)
		}
	}
	return g.lease.EndLocked(err, engine.LeaseLost)
}

// releaseLocked ends the lease by an Unlock.
func (g *Group) releaseLocked() engine.Ended { return g.endLocked(g.errorOf(engine.Released)) }

// errorOf makes the error of a fact for the caller of the whole.
func (g *Group) errorOf(f engine.Fact, causes ...error) error {
	return g.first.ErrorOf(g.lease.Name(), f, causes...)
}

// Dissolve gives everything back of a lease that is not handed out. It waits for no server.
func (g *Group) Dissolve() { g.dissolveBut(func(*engine.Lease) bool { return false }) }

// dissolveBut is Dissolve, except that it takes out and returns those parts that keep is true of.
func (g *Group) dissolveBut(keep func(*engine.Lease) bool) (kept []*engine.Lease) {
	g.mu.Lock()
	if g.lease.ErrLocked() == nil {
		g.releaseLocked()
	}
	parts := slices.Concat(g.parts, g.lost)
	g.mu.Unlock()
	for _, p := range parts { // including those that have ended, and may still be in Redis
		if !keep(p) || !p.Detach() {
			p.GiveBack()
		} else {
			kept = append(kept, p)
		}
	}
	g.work.Wait()
	return kept
}

// known returns the parts as they are now.
func (g *Group) known() []*engine.Lease {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Clone(g.parts)
}

// Deadline returns until when enough parts are valid, or were if the lease has ended.
func (g *Group) Deadline() time.Time {
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

// Valid reports whether the lease is held and enough parts are valid. A part that has ended does not count from then on, and
// not only once the lease has learned of it: another owner may have its lock already.
func (g *Group) Valid() bool {
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
