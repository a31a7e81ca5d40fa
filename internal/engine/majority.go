package engine

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/internal/command"
	"github.com/holdfast-go/holdfast/internal/lock"
	"github.com/holdfast-go/holdfast/internal/retry"
	"github.com/holdfast-go/holdfast/internal/voting"
)

// Majority is one lock on several engines, held while most of them grant it.
type Majority struct {
	members []*Lock
	whole   *Lock                        // the locks together; its engine is that of the first
	vain    []atomic.Int64               // by member: until when it comes behind the others, after the first engine's epoch; see shun
	askAt   atomic.Int64                 // when a refused call may ask for twins, likewise
	twin    atomic.Pointer[lock.Verdict] // two members are one server; nil: as far as is known, none are
}

// NewMajority makes a lock of its members, which are together called whole.
func NewMajority(whole *Lock, members []*Lock) *Majority {
	return &Majority{members: members, whole: whole, vain: make([]atomic.Int64, len(members))}
}

// TryLock asks all members once.
func (l *Majority) TryLock(ctx context.Context) (*Lease, error) {
	if lease := l.reenter(ctx); lease != nil {
		return lease, nil
	}
	r := l.round(ctx, nil, false)
	giveBackAll(r.kept)
	return r.lease, r.err
}

// Lock waits until a majority has granted the lock.
func (l *Majority) Lock(ctx context.Context) (*Lease, error) {
	if lease := l.reenter(ctx); lease != nil {
		return lease, nil
	}
	pauses := retry.New()
	var votes []*Lease   // that the next round begins with
	var before error     // of the round before
	var barred time.Time // when too few members first let their clients in; zero: they have
	for {
		r := l.round(ctx, votes, before != nil)
		switch err := r.err; {
		case err == nil:
			return r.lease, nil
		case errors.Is(err, context.Cause(ctx)):
			giveBackAll(r.kept)
			if r.at < 0 && errors.Is(err, lock.NotAcquired) && before != nil {
				err = l.left(ctx, before) // this round was cut short and says nothing
			}
			return nil, err
		case r.final == nil:
			barred = time.Time{}
		case errors.Is(r.final, lock.Unavailable) && command.IsBarred(r.final) && l.admitted():
			if barred.IsZero() {
				barred = time.Now()
			}
			if time.Since(barred) >= l.whole.engine.Readmission {
				giveBackAll(r.kept)
				return nil, err
			}
		default:
			giveBackAll(r.kept)
			return nil, err
		}
		before, votes = r.err, nil
		if r.at >= 0 && r.final == nil {
			votes = l.wait(ctx, r)
		} else {
			giveBackAll(r.kept)
		}
		if len(votes) > 0 {
			pauses.Reset()
		} else {
			Sleep(ctx, pauses.NextBackOff()/4)
		}
		if ctx.Err() != nil {
			giveBackAll(votes)
			return nil, l.left(ctx, before)
		}
	}
}

func (l *Majority) quorum() int { return voting.Quorum(len(l.members)) }

// admitted reports whether so many members have let their clients in before that a majority may do so again.
func (l *Majority) admitted() bool {
	n := 0
	for _, h := range l.members {
		if h.engine.Executor.Admitted() {
			n++
		}
	}
	return n >= l.quorum()
}

func giveBackAll(votes []*Lease) {
	for _, p := range votes {
		p.giveBack()
	}
}

// newGroup makes a lease that members join, even after Lock has returned and its ctx has ended. retake takes a member that is
// lost.
func (l *Majority) newGroup(ctx context.Context, retake func(g *group, member int)) *group {
	g := newGroup(l.whole, l.quorum())
	g.majority = l
	g.life, g.stop = context.WithCancel(context.WithoutCancel(ctx))
	g.retake = func(p *Lease) { retake(g, l.memberOf(p)) }
	return g
}

// memberOf returns which member a vote is of.
func (l *Majority) memberOf(p *Lease) int {
	for i := range l.members {
		if l.members[i].engine == p.Engine() {
			return i
		}
	}
	return -1
}

// retake asks a member that is missing until it joins the lease, while that is valid
// without it.
func (l *Majority) retake(g *group, member int) {
	pauses := retry.New()
	for Sleep(g.life, pauses.NextBackOff()) {
		if !g.valid() {
			continue // not yet granted, or about to end
		}
		if l.lookForTwins(g.life, member); l.twin.Load() != nil {
			return // the lease lasts, and the next call fails
		}
		// Not observed: it may go on for hours, and is no acquire of the caller's.
		switch part, err := l.members[member].obtain(g.life, true, nil); {
		case err == nil:
			g.join(part)
			return
		case errors.Is(err, lock.Closed):
			return
		}
	}
}

// reenter returns a lease of the members that ctx carries leases of, if they are a majority. It sends no request.
// It returns nil if they are not.
func (l *Majority) reenter(ctx context.Context) *Lease {
	if ctx.Err() != nil || !carriesLeases(ctx) {
		return nil
	}
	g := l.newGroup(ctx, l.follow)
	var missing []int
	for i, h := range l.members {
		// Only a call that asks Redis reports a verdict.
		if part, _ := h.reenter(ctx); part != nil {
			g.join(part)
		} else {
			missing = append(missing, i)
		}
	}
	if len(g.known()) < g.need || !g.valid() {
		g.dissolve()
		return nil
	}
	for _, i := range missing {
		g.work.Go(func() { l.follow(g, i) })
	}
	return g.lease
}

// follow re-enters a member that is missing in a lease taken by re-entry once the outer lease
// has it. Asking for it would compete with the outer lease, which asks as well.
func (l *Majority) follow(g *group, member int) {
	pauses := retry.New()
	for Sleep(g.life, pauses.NextBackOff()) {
		if part, _ := l.members[member].reenter(g.life); part != nil {
			g.join(part)
			return
		}
	}
}
