package engine

import (
	"slices"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/internal/lock"
	"github.com/holdfast-go/holdfast/internal/telemetry"
)

// Lease is a caller's right to a lock, from the grant until Unlock or loss: of one lock, which has an entry, or of several.
// It is the same object as the lock's own, and what the root package makes of the type is what users see.
type Lease lock.Lease

// in is l as the lock knows it.
func (l *Lease) in() *lock.Lease { return (*lock.Lease)(l) }

// entry is that of a lease of one lock; nil: it is of several.
func (l *Lease) entry() *entry {
	if of := l.in().Of(); of != nil {
		return entryOf(of)
	}
	return nil
}

// more is what few leases have. It is apart because each grant makes a lease. It is guarded by entry.mu, or by the mutex of several
// locks, but for group.
type more struct {
	lock.Shell
	err      error                          // why the lease ended, once asked for; of several locks: nil while held
	done     chan struct{}                  // made when first asked for
	contexts map[<-chan struct{}]*sharedEnd // by the Done of their parents
	label    *string                        // of WithLabel; nil: none
	wanted   chan struct{}                  // made when first asked for
	whole    *Lease                         // the lease of several locks that this one is part of; nil: none
	group    *group                         // of a lease of several locks; else nil. Not changed
}

// few returns what few leases have; nil: nothing.
func (l *Lease) few() *more {
	if s := l.in().Shell(); s != nil {
		return s.Of.(*more)
	}
	return nil
}

// moreLocked is few, which is made if there is none.
func (l *Lease) moreLocked() *more {
	x := l.few()
	if x == nil {
		x = newMore(nil)
		l.in().SetShell(&x.Shell)
	}
	return x
}

func newMore(of *group) *more {
	x := &more{group: of}
	x.Of = x
	return x
}

// labelLocked is the label of the lease; nil: none.
func (l *Lease) labelLocked() *string {
	if x := l.few(); x != nil {
		return x.label
	}
	return nil
}

// setLabelLocked gives the lease a label; nil: none.
func (l *Lease) setLabelLocked(label *string) {
	if label != nil {
		l.moreLocked().label = label
	}
}

// mu guards what changes.
func (l *Lease) mu() *sync.Mutex {
	if e := l.entry(); e != nil {
		return &e.mu
	}
	return &l.few().group.mu
}

// Name is the name of the lock as its caller has given it.
func (l *Lease) Name() string { return l.in().Name() }

// Owner is the owner id of a lease of a Mutex.
func (l *Lease) Owner() string { return l.Engine().Process.ID(l.in().Hold()) }

// Token is the fencing token; 0: none.
func (l *Lease) Token() uint64 { return l.in().Token() }

// Permits is how many permits of a semaphore it holds; 0: it is of another kind, or of several locks.
func (l *Lease) Permits() int {
	if l.several() != nil {
		return 0
	}
	return l.in().Hold().Terms.Permits
}

// Kind is which lock, and which side of it, the caller has asked for.
func (l *Lease) Kind() lock.Kind { return l.in().Kind() }

// Mode says how the lease came about.
func (l *Lease) Mode() string { return l.in().Mode().String() }

// several is what the lease consists of if it is one of several locks, else nil.
func (l *Lease) several() *group {
	if l.in().Of() != nil || l.few() == nil {
		return nil
	}
	return l.few().group
}

// IsSeveral reports whether it is a lease of several locks.
func (l *Lease) IsSeveral() bool { return l.several() != nil }

// Self is the lease that a lock has granted, of which l may be a copy; nil: l is a zero value.
func (l *Lease) Self() *Lease { return (*Lease)(l.in().Self()) }

// Class is the class of the name, for metrics.
func (l *Lease) Class() string {
	c, _ := l.in().Class().(*class)
	return c.Label()
}

// Subject is the lock as telemetry names it, for an Unlock and for the end of the lease.
func (l *Lease) Subject() telemetry.Subject {
	return telemetry.Subject{Name: l.Name(), Kind: l.Kind().String(), Class: l.Class()}
}

// Engine is the engine of the lease's lock, or of the first of several.
func (l *Lease) Engine() *Engine {
	if e := l.entry(); e != nil {
		return e.engine
	}
	return l.few().group.of.engine
}

// Deadline is until when a lease is trusted.
func (l *Lease) Deadline() time.Time {
	if g := l.several(); g != nil {
		return g.deadline()
	}
	l.mu().Lock()
	defer l.mu().Unlock()
	return l.in().Deadline()
}

// Valid reports whether a lease is held and its deadline has not come.
func (l *Lease) Valid() bool {
	if g := l.several(); g != nil {
		return g.valid()
	}
	l.mu().Lock()
	defer l.mu().Unlock()
	return l.in().Valid(time.Now())
}

// Err is why the lease has ended; nil: it is held.
func (l *Lease) Err() error {
	l.mu().Lock()
	defer l.mu().Unlock()
	return l.errLocked()
}

// errLocked is Err: the same error at each call.
func (l *Lease) errLocked() error {
	end := l.in().End()
	if end == nil { // or it is of several locks
		if x := l.few(); x != nil {
			return x.err
		}
		return nil
	}
	x := l.moreLocked()
	if x.err == nil {
		x.err = l.explain(end)
	}
	return x.err
}

// Done is closed when the lease ends. Each call returns the same channel.
func (l *Lease) Done() <-chan struct{} {
	l.mu().Lock()
	defer l.mu().Unlock()
	x := l.moreLocked()
	if x.done == nil {
		x.done = make(chan struct{})
		if l.errLocked() != nil {
			close(x.done)
		}
	}
	return x.done
}

// Wanted is closed when another owner wants the lock, or one of several, if the lease has not ended before. Each call returns the same
// channel.
func (l *Lease) Wanted() <-chan struct{} {
	l.mu().Lock()
	x := l.moreLocked()
	first := x.wanted == nil
	if first {
		x.wanted = make(chan struct{})
	}
	l.mu().Unlock()
	switch of := l.several(); {
	case !first:
	case of == nil:
		l.watch()
	default:
		for _, p := range of.heldParts() {
			p.watch()
		}
	}
	return x.wanted
}

// wantedLocked closes the channel of Wanted, if there is one. It returns the lease of several locks that l is a part of; nil: none.
func (l *Lease) wantedLocked() (whole *Lease) {
	x := l.few()
	if x == nil {
		return nil
	}
	if x.wanted != nil {
		select {
		case <-x.wanted:
		default:
			close(x.wanted)
		}
	}
	return x.whole
}

// StillHeld reports why the lease is not, nil if it is.
func (l *Lease) StillHeld() error {
	l.mu().Lock()
	defer l.mu().Unlock()
	err := l.errLocked()
	if err == lock.Released {
		return NewError(lock.NotHeld, l.Name())
	}
	return err
}

// LimitedTo reports whether WithMaxHold ends the lease before d is over, or so many of its parts that too few are left.
func (l *Lease) LimitedTo(d time.Duration) bool {
	if g := l.several(); g != nil {
		parts := slices.DeleteFunc(g.known(), func(p *Lease) bool { return p.LimitedTo(d) })
		return len(parts) < g.need
	}
	l.mu().Lock()
	defer l.mu().Unlock()
	limit := l.in().Limit()
	return limit != nil && time.Until(limit.At) < d
}

// closeLocked closes what waits for the end of a lease of one lock, and returns what is to be done outside the lock.
func (l *Lease) closeLocked() Ended {
	in := l.in()
	d, shell := Ended{lease: l, end: in.End().Fact, mode: in.Mode()}, in.Shell()
	if shell != nil {
		d.close(shell.Of.(*more), l.errLocked())
	}
	return d
}
