package engine

import (
	"context"
	"errors"
	"time"

	"github.com/holdfast-go/holdfast/internal/lock"
)

// Calls for all parts at the same time.

// failure is how a call for one part ended.
type failure struct {
	part *Lease
	err  error
}

// unlock releases all parts at the same time. Called again, it waits for their releases as
// well, until one call has returned nil. A Redlock is released when a majority is;
// the others go on in the background.
func (g *group) unlock(ctx context.Context) error {
	at := time.Now()
	g.mu.Lock()
	switch err := g.lease.errLocked(); {
	case g.confirmed:
		g.mu.Unlock()
		return NewError(lock.NotHeld, g.lease.Name())
	case err != nil && !errors.Is(err, lock.Released):
		lost := g.lost
		g.lost = nil
		g.mu.Unlock()
		for _, p := range lost {
			p.settle()
		}
		g.work.Wait()
		return err
	}
	var gone Ended
	if g.lease.errLocked() == nil {
		gone = g.endLocked(lock.Released)
	}
	parts, lost := g.parts, g.lost
	g.lost = nil
	g.mu.Unlock()
	begun := make(map[*Lease]func() error, len(parts))
	for _, p := range parts { // before anything that may take time: all were valid if the lease was
		begun[p] = p.beginUnlock(ctx, at)
	}
	gone.Announce(g.of.engine)
	for _, p := range lost {
		p.settle()
	}
	g.work.Wait()

	err := g.each(parts, func(p *Lease) error {
		err := begun[p]()
		if errors.Is(err, lock.NotHeld) {
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
		return NewError(lock.NotHeld, g.lease.Name())
	}
	g.confirmed = true
	return nil
}

// extend prolongs all parts at the same time.
func (g *group) extend(ctx context.Context, d time.Duration) error {
	if err := g.lease.StillHeld(); err != nil {
		return err
	}
	err := g.each(g.known(), func(p *Lease) error { return p.Extend(ctx, d) })
	if ended := g.lease.StillHeld(); ended != nil {
		return ended
	}
	return err
}

// logLoss writes once that a Redlock was lost, if it ended with err because of that: it outlives the loss of a
// minority, so the lines of its members do not say so. No lock may be held.
func (g *group) logLoss(err error) {
	var lost lock.Reason
	if g.majority == nil || !errors.As(err, &lost) {
		return
	}
	g.mu.Lock()
	first := !g.told
	g.told = true
	g.mu.Unlock()
	if first {
		g.of.engine.Journal.Lost(g.lease.Name(), string(lost))
	}
}

// each calls do for all parts at the same time, which takes a second at most. It returns
// nil as soon as as many calls as are needed have succeeded, else all errors; but not those of parts
// that have ended, as long as the others are enough: then the lease has not.
func (g *group) each(parts []*Lease, do func(*Lease) error) error {
	results := make(chan failure, len(parts))
	for _, p := range parts {
		go func() { results <- failure{p, do(p)} }()
	}
	done := 0
	var failed, ended []failure
	for range parts {
		switch r := <-results; {
		case errors.Is(r.err, lock.LeaseLost), errors.Is(r.err, lock.MaxHoldOver), errors.Is(r.err, lock.Closed):
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
	if g.majority != nil {
		return g.majority.join(failed)
	}
	all := make([]error, len(failed)) // each names its lock
	for i, f := range failed {
		all[i] = f.err
	}
	return errors.Join(all...)
}
