package several

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/internal/command"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/retry"
	"github.com/holdfast-go/holdfast/internal/voting"
)

// Members is what a majority needs of the package that users call. A member is named by its index.
type Members interface {
	Calls
	// Take is Lock of a member or, unless it is to wait, TryLock.
	Take(ctx context.Context, member int, wait bool) (*engine.Lease, error)
	// Owners names the owners that hold a member. It returns free if the caller could have the member: no owner holds it, or
	// only readers do and the caller is a reader.
	Owners(ctx context.Context, member int) (string, error)
	// NotGranted makes the error of a round without a majority. final is why asking again would bring the same answer, the
	// error of the first member that says so; nil: it may bring another one.
	NotGranted(ctx context.Context, b *Ballot) (err, final error)
	// Left makes the error of a caller whose ctx has ended, where the last round ended with err.
	Left(ctx context.Context, err error) error
	// Twins makes the error of two members that are one server.
	Twins(member, other int) error
}

// Ballot is what the members did in a round.
type Ballot struct {
	Begun   time.Time
	Members []voting.Member
	Errs    []error // by member; nil: it has granted its vote, or not answered
	Over    bool    // the context of the caller has ended
}

// Member is a lock on one of several independent servers.
type Member struct {
	Engine *engine.Engine
	Lock   *engine.Lock
}

// lag returns how long the member takes to answer.
func (m *Member) lag() time.Duration { return m.Engine.Executor.Lag(m.Lock.Mapped) }

// Majority is a lock on several servers, which is held while most of them grant it.
type Majority struct {
	whole   *engine.Lock // the locks together
	members []Member
	calls   Members
	vain    []atomic.Int64        // by member: until when it comes behind the others, after epoch; see shun
	askAt   atomic.Int64          // when a refused call may ask for twins, likewise
	twin    atomic.Pointer[error] // two members are one server; nil: as far as is known, none are
}

// NewMajority returns the lock of members, which are together called whole.
func NewMajority(whole *engine.Lock, members []Member, calls Members) *Majority {
	return &Majority{whole: whole, members: members, calls: calls, vain: make([]atomic.Int64, len(members))}
}

func (l *Majority) quorum() int { return voting.Quorum(len(l.members)) }

// first is the engine of the first member.
func (l *Majority) first() *engine.Engine { return l.members[0].Engine }

// TryLock is TryLock of a Redlock.
func (l *Majority) TryLock(ctx context.Context) (*engine.Lease, error) {
	if lease := l.reenter(ctx); lease != nil {
		return lease, nil
	}
	r := l.round(ctx, nil, false)
	giveBackAll(r.kept)
	return r.lease, r.err
}

// Lock is Lock of a Redlock.
func (l *Majority) Lock(ctx context.Context) (*engine.Lease, error) {
	if lease := l.reenter(ctx); lease != nil {
		return lease, nil
	}
	pauses := retry.New()
	var votes []*engine.Lease // that the next round begins with
	var before error          // of the round before
	var barred time.Time      // when too few members first let their clients in; zero: they have
	for {
		r := l.round(ctx, votes, before != nil)
		switch err := r.err; {
		case err == nil:
			return r.lease, nil
		case errors.Is(err, context.Cause(ctx)):
			giveBackAll(r.kept)
			if r.at < 0 && l.calls.Is(err, engine.NotAcquired) && before != nil {
				err = l.calls.Left(ctx, before) // this round was cut short and says nothing
			}
			return nil, err
		case r.final == nil:
			barred = time.Time{}
		case l.calls.Is(r.final, engine.Unavailable) && command.IsBarred(r.final) && l.admitted():
			if barred.IsZero() {
				barred = time.Now()
			}
			if time.Since(barred) >= l.first().Readmission {
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
			engine.Sleep(ctx, pauses.NextBackOff()/4)
		}
		if ctx.Err() != nil {
			giveBackAll(votes)
			return nil, l.calls.Left(ctx, before)
		}
	}
}

// admitted reports whether so many members have let their clients in before that a majority may do so again.
func (l *Majority) admitted() bool {
	n := 0
	for _, m := range l.members {
		if m.Engine.Executor.Admitted() {
			n++
		}
	}
	return n >= l.quorum()
}

func giveBackAll(votes []*engine.Lease) {
	for _, p := range votes {
		p.GiveBack()
	}
}

// newGroup makes a lease that members join, even after Lock has returned and its ctx has ended. retake takes a member that is
// lost.
func (l *Majority) newGroup(ctx context.Context, retake func(g *Group, member int)) *Group {
	g := New(l.whole, l.first(), l.quorum(), l.calls)
	g.life, g.stop = context.WithCancel(context.WithoutCancel(ctx))
	g.retake = func(p *engine.Lease) { retake(g, l.memberOf(p)) }
	return g
}

// memberOf returns which member a vote is of.
func (l *Majority) memberOf(p *engine.Lease) int {
	for i := range l.members {
		if l.members[i].Engine == p.Engine() {
			return i
		}
	}
	return -1
}

// retake asks a member that is missing until it joins the lease, while that is valid
// without it.
func (l *Majority) retake(g *Group, member int) {
	pauses := retry.New()
	for engine.Sleep(g.life, pauses.NextBackOff()) {
		if !g.Valid() {
			continue // not yet granted, or about to end
		}
		if l.twins(g.life, member) != nil {
			return // the lease lasts, and the next call fails
		}
		// Not observed: it may go on for hours, and is no acquire of the caller's.
		switch part, err := l.members[member].Lock.Obtain(g.life, true, nil); {
		case err == nil:
			g.Join(part)
			return
		case l.calls.Is(err, engine.Closed):
			return
		}
	}
}

// reenter returns a lease of the members that ctx carries leases of, if they are a majority. It sends no request.
// It returns nil if they are not.
func (l *Majority) reenter(ctx context.Context) *engine.Lease {
	if ctx.Err() != nil || !engine.CarriesLeases(ctx) {
		return nil
	}
	g := l.newGroup(ctx, l.follow)
	var missing []int
	for i, m := range l.members {
		// Only a call that asks Redis reports a verdict.
		if part, _ := m.Lock.Reenter(ctx); part != nil {
			g.Join(part)
		} else {
			missing = append(missing, i)
		}
	}
	if len(g.known()) < g.need || !g.Valid() {
		g.Dissolve()
		return nil
	}
	for _, i := range missing {
		g.work.Go(func() { l.follow(g, i) })
	}
	return g.lease
}

// follow re-enters a member that is missing in a lease taken by re-entry once the outer lease
// has it. Asking for it would compete with the outer lease, which asks as well.
func (l *Majority) follow(g *Group, member int) {
	pauses := retry.New()
	for engine.Sleep(g.life, pauses.NextBackOff()) {
		if part, _ := l.members[member].Lock.Reenter(g.life); part != nil {
			g.Join(part)
			return
		}
	}
}
