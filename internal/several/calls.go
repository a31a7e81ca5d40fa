package several

import (
	"context"
	"time"

	"github.com/holdfast-go/holdfast/internal/engine"
)

// Calls for all parts of a lease at the same time.

// Unlock releases all parts at the same time. Called again, it waits for their releases as
// well, until one call has returned nil. A Redlock is released when a majority is;
// the others go on in the background.
func (g *Group) Unlock(ctx context.Context) error {
	at := time.Now()
	g.mu.Lock()
	switch err := g.lease.ErrLocked(); {
	case g.confirmed:
		g.mu.Unlock()
		return g.errorOf(engine.NotHeld)
	case err != nil && !g.calls.Is(err, engine.Released):
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
		gone = g.releaseLocked()
	}
	parts, lost := g.parts, g.lost
	g.lost = nil
	g.mu.Unlock()
	begun := make(map[*engine.Lease]func() error, len(parts))
	for _, p := range parts { // before anything that may take time: all were valid if the lease was
		begun[p] = g.calls.Unlock(ctx, p, at)
	}
	gone.Announce()
	for _, p := range lost {
		p.Settle()
	}
	g.work.Wait()

	err := g.each(parts, func(p *engine.Lease) error {
		err := begun[p]()
		if g.calls.Is(err, engine.NotHeld) {
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
		return g.errorOf(engine.NotHeld)
	}
	g.confirmed = true
	return nil
}

// Extend prolongs all parts at the same time.
func (g *Group) Extend(ctx context.Context, d time.Duration) error {
	if err := g.stillHeld(); err != nil {
		return err
	}
	err := g.each(g.known(), func(p *engine.Lease) error { return g.calls.Extend(ctx, p, d) })
	if ended := g.stillHeld(); ended != nil {
		return ended
	}
	return err
}

// logLoss writes once that a Redlock was lost, if it ended with err because of that: it outlives the loss of a
// minority, so the lines of its members do not say so. No lock may be held.
func (g *Group) logLoss(err error) {
	reason, lost := g.calls.Lost(err)
	if g.retake == nil || !lost {
		return
	}
	g.mu.Lock()
	first := !g.told
	g.told = true
	g.mu.Unlock()
	if first {
		g.first.Journal.Lost(g.lease.Name(), reason)
	}
}

// stillHeld reports why the lease is not, nil if it is.
func (g *Group) stillHeld() error {
	err := g.lease.Err()
	if g.calls.Is(err, engine.Released) {
		return g.errorOf(engine.NotHeld)
	}
	return err
}

// each calls do for all parts at the same time, which takes a second at most. It returns
// nil as soon as as many calls as are needed have succeeded, else all errors; but not those of parts
// that have ended, as long as the others are enough: then the lease has not.
func (g *Group) each(parts []*engine.Lease, do func(*engine.Lease) error) error {
	results := make(chan Failure, len(parts))
	for _, p := range parts {
		go func() { results <- Failure{p, do(p)} }()
	}
	done := 0
	var failed, ended []Failure
	for range parts {
		switch r := <-results; {
		case g.calls.Is(r.Err, engine.LeaseLost), g.calls.Is(r.Err, engine.MaxHoldOver), g.calls.Is(r.Err, engine.LeaseClosed):
			ended = append(ended, r)
		case r.Err != nil:
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
	return g.calls.Join(failed)
}
