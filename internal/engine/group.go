package engine

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/internal/lock"
)

// group is what a lease of several locks consists of: its parts, a lease of each lock. It ends when fewer are left than it
// needs; the rest is then released.
type group struct {
	lease *Lease // the whole
	of    *Lock  // the locks together
	need  int    // how many parts it takes

	waited bool // its caller has had to wait, whatever the parts say; not changed once one has joined

	// Redlock only, else nil: members join and leave while it is held.
	majority *Majority
	retake   func(part *Lease)  // takes the lost member again that part was of, until life ends
	life     context.Context    // carries the leases that the caller's context did, ends with the lease
	stop     context.CancelFunc // ends life
	work     sync.WaitGroup     // goroutines that take members; begun under mu, or before the lease is held

	mu        sync.Mutex // guards the following and the state of the lease; no other lock is held with it
	parts     []*Lease   // held as far as is known; once the lease has ended, those it ended with
	lost      []*Lease   // what Unlock settles: the parts that ended it, and those whose end was set
	held      bool       // there were enough parts
	confirmed bool       // an Unlock has returned nil
	told      bool       // a Redlock's loss is logged
}

// newGroup makes a lease of locks, which are together called whole, that so many parts are enough for.
func newGroup(whole *Lock, need int) *group {
	g := &group{of: whole, need: need}
	g.lease = (*Lease)(lock.Several(whole.by(), &newMore(g).Shell))
	return g
}

// heldParts returns the parts; none once the lease has ended.
func (g *group) heldParts() (parts []*Lease) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.lease.errLocked() != nil {
		return nil
	}
	return slices.Clone(g.parts)
}

// join makes p part of g. It gives p back if g has ended, or is about to: a part that was
// granted after the others lapsed must not make up for them.
func (g *group) join(p *Lease) {
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
	if g.lease.errLocked() != nil || held && !sound {
		g.mu.Unlock()
		p.giveBack()
		return
	}
	g.parts = append(g.parts, p)
	if !g.held {
		g.held = len(g.parts) >= g.need
		l := g.lease.in()
		l.SetSince(time.Since(g.of.engine.Epoch))
		if how, its := l.Mode(), p.in().Mode(); its != lock.Reentry && (how == lock.Reentry || its > how) {
			l.SetMode(its) // that of the part that took most
		}
		if g.waited {
			l.SetMode(max(l.Mode(), lock.AfterWait))
		}
	}
	g.mu.Unlock()
	if err := p.joinWhole(g.lease); err != nil {
		g.partEnded(p, err) // it did so before it knew what it is part of
	}
}

// partEnded is called when the part p has ended with err.
func (g *group) partEnded(p *Lease, err error) {
	set := p.endWasSet() // of a lease that has ended it stays so
	g.mu.Lock()
	if g.lease.errLocked() != nil || !slices.Contains(g.parts, p) {
		g.mu.Unlock()
		return
	}
	rest := slices.DeleteFunc(slices.Clone(g.parts), func(x *Lease) bool { return x == p })
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
		gone.Announce(g.of.engine)
		g.logLoss(err)
		for _, x := range rest {
			if set {
				x.lapse(errors.Is(err, lock.MaxHoldOver))
			} else {
				x.giveBack()
			}
		}
		return
	}
	g.parts = rest
	// A part with an end of its own is not taken again: members that ended one after the other
	// would give the lease a new end each time.
	if g.retake != nil && !p.endsByItself() {
		g.work.Go(func() { g.retake(p) })
	}
	g.mu.Unlock()
	if !set {
		p.settle()
	}
}

// endLocked ends the lease.
func (g *group) endLocked(err error) Ended {
	if g.stop != nil {
		g.stop()
	}
	fact := lock.LeaseLost
	errors.As(err, &fact) // of a loss it finds none
	d := Ended{lease: g.lease, end: fact, mode: g.lease.in().Mode()}
	x := g.lease.few()
	x.err = err
	d.close(x, err)
	return d
}

// dissolve gives everything back of a lease that is not handed out. It waits for no server.
func (g *group) dissolve() { g.dissolveBut(func(*Lease) bool { return false }) }

// dissolveBut is dissolve, except that it takes out and returns those parts that keep is true of.
func (g *group) dissolveBut(keep func(*Lease) bool) (kept []*Lease) {
	g.mu.Lock()
	if g.lease.errLocked() == nil {
		g.endLocked(lock.Released)
	}
	parts := slices.Concat(g.parts, g.lost)
	g.mu.Unlock()
	for _, p := range parts { // including those that have ended, and may still be in Redis
		if !keep(p) || !p.leaveWhole() {
			p.giveBack()
		} else {
			kept = append(kept, p)
		}
	}
	g.work.Wait()
	return kept
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

// What a lease of one lock is as a part of one of several.

// joinWhole makes l a part of whole. It returns why not if l has ended.
func (l *Lease) joinWhole(whole *Lease) error {
	l.mu().Lock()
	defer l.mu().Unlock()
	err := l.errLocked()
	if err == nil {
		l.moreLocked().whole = whole
	}
	return err
}

// leaveWhole takes a lease off the whole that it is part of, and reports whether it is still held.
func (l *Lease) leaveWhole() bool {
	l.mu().Lock()
	defer l.mu().Unlock()
	if l.in().End() != nil {
		return false
	}
	l.moreLocked().whole = nil
	return true
}

// endsByItself reports whether an option ends the lease: then it is not taken again.
func (l *Lease) endsByItself() bool {
	l.mu().Lock()
	defer l.mu().Unlock()
	return l.in().EndsByItself()
}

// endWasSet reports whether a part that has ended has come to the end that WithMaxHold or
// WithFixedLease set. Its holder may not have noticed, so its lock stays in Redis until Unlock or its TTL.
func (l *Lease) endWasSet() bool {
	l.mu().Lock()
	defer l.mu().Unlock()
	return l.in().EndWasSet(time.Now())
}

// lapse ends a part with the whole, whose end WithMaxHold has set if limited, else WithFixedLease: as endWasSet says, if no
// other lease keeps its hold.
func (l *Lease) lapse(limited bool) {
	e := l.entry()
	over := false
	e.do(func(m *lock.Moment) { over = e.lock.Lapse(m, l.in(), limited) })
	if !over {
		l.giveBack()
	}
}

// settle releases what a lease that ended early may still have in Redis.
func (l *Lease) settle() { _ = l.UnlockAgain(context.Background()) }
