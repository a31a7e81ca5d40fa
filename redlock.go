package holdfast

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/internal/command"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/lock"
	"github.com/holdfast-go/holdfast/internal/retry"
	"github.com/holdfast-go/holdfast/internal/telemetry"
	"github.com/holdfast-go/holdfast/internal/voting"
)

// Redlock is one lock on several independent Redis servers, held while a majority of them grants
// it. It follows the algorithm of that name (redis.io, "Distributed Locks with Redis").
//
// A Redlock survives the loss of a minority of the servers, and no server has to replicate. It does
// not prevent an overlap with a holder that is paused beyond its lease. It has no fencing token. It
// relies on clocks that run at about the same rate, and on servers that keep their data: a server
// that restarts empty within the TTL can vote a second time.
//
// Martin Kleppmann has pointed these limits out. Salvatore Sanfilippo's answer is right as far as
// it goes: the time spent on acquiring is subtracted from the validity, delays after that affect
// every lease alike, and a restarted server should stay away for a TTL. If an overlap only wastes
// work, one server is simpler and cheaper. If it corrupts data, use a store with consensus, or
// fencing on one server. Redisson has deprecated its own Redlock.
//
// The lease is valid until the deadline that a majority shares: the deadline of each member is
// computed from the moment before its request was sent, less a margin for drift. Members are
// renewed separately. Members that are down or lost are retried while the remaining majority is
// still valid. Once the majority has lapsed, even briefly, they are never retried, because they
// could have voted for another owner in between. With [WithFixedLease] or [WithMaxHold] a lost
// member is not retried, or the lease could outlast them.
type Redlock struct {
	members []*handle
	whole   handle                      // the locks together
	vain    []atomic.Int64              // by member: until when it comes behind the others, after the first engine's epoch; see shun
	askAt   atomic.Int64                // when a refused call may ask for twins, likewise
	twin    atomic.Pointer[OptionError] // two members are one server; nil: as far as is known, none are
}

// NewRedlock returns the lock whose members are locks: one on each of several independent servers,
// each with a Manager of its own.
//
// It returns [ErrInvalidOption] for fewer than three locks, for two locks of one Manager, for read
// sides beside other locks (two majorities that only share readers would not exclude each other),
// for a *[Multi], and for arguments that [NewMulti] does not take. TryLock and Lock return it if two
// members turn out to be the same server.
//
// One member at a time keeps the order of the waiters. A Redlock of fair locks is therefore usually
// in order, without a guarantee. In a Redlock of read-write locks a writer can starve while readers
// always overlap.
func NewRedlock(locks ...Locker) (*Redlock, error) {
	all, err := handlesOf("NewRedlock", locks)
	if err != nil {
		return nil, err
	}
	if len(all) < 3 {
		return nil, &OptionError{"NewRedlock", len(all), "needs at least three locks"}
	}
	seen := make(map[*Manager]bool)
	for i, h := range all {
		if twin := slices.IndexFunc(all[:i], func(o *handle) bool { return command.OneServer(o.m.engine.Executor, h.m.engine.Executor) }); twin >= 0 {
			return nil, &OptionError{"NewRedlock", h.lock.Name, fmt.Sprintf("members %d and %d are databases of the same server", twin+1, i+1)}
		}
		if seen[h.m] {
			return nil, &OptionError{"NewRedlock", h.lock.Name, "two members of one Manager are not independent"}
		}
		if h.lock.Kind.Shared() != all[0].lock.Kind.Shared() {
			return nil, &OptionError{"NewRedlock", h.lock.Name, "read sides and other locks must not be mixed"}
		}
		seen[h.m] = true
	}
	name := strings.Join(slices.Compact(namesOf(all)), "+") // mostly the same everywhere
	return &Redlock{members: all, whole: wholeOf(lock.RedlockKind, name, all), vain: make([]atomic.Int64, len(all))}, nil
}

// TryLock sends a request to all members at the same time. It returns as soon as a majority has
// granted the lock, or shortly after a majority has become impossible: grants are then released. A
// member that is late, compared with those that answered, counts as missing if another owner holds
// one of the others.
//
// TryLock returns [ErrNotAcquired] if another owner holds the lock, and [ErrUnavailable] if too few
// members answered in the time that [Mutex.TryLock] gives each. Both say what each member did.
// Other errors are those of Mutex.TryLock.
func (l *Redlock) TryLock(ctx context.Context) (*Lease, error) {
	return l.together().takeWhole(ctx, "TryLock", true, func(ctx context.Context, _ *telemetry.Operation) (*engine.Lease, error) {
		if lease := l.reenter(ctx); lease != nil {
			return lease, nil
		}
		r := l.round(ctx, nil, false)
		giveBackAll(r.kept)
		return r.lease, r.err
	})
}

// Lock blocks until a majority grants the lock or ctx is done. Errors are those of [Mutex.Lock],
// and say what each member did. While too few members can be reached, Lock keeps trying, but not if
// they deny access.
//
// A caller that is refused waits in the queue of one member, the first that refused it, so that a
// release wakes the caller and callers are served in order there. For a moment it keeps the votes
// of the members before that one, and no others, so callers never wait for each other in a circle.
// Once a second a waiting caller checks whether its place is right: whether the member answers as
// the others do, and whether the lock changes hands elsewhere.
//
// A minority of members that is stopped, killed, unreachable or slow does not delay the others: a
// member that is late, compared with those that answered, counts as missing.
func (l *Redlock) Lock(ctx context.Context) (*Lease, error) {
	return l.together().takeWhole(ctx, "Lock", false, l.lock)
}

// together returns the handle of all locks; nil if l is.
func (l *Redlock) together() *handle {
	if l == nil {
		return nil
	}
	return &l.whole
}

// lock is Lock.
func (l *Redlock) lock(ctx context.Context, _ *telemetry.Operation) (*engine.Lease, error) {
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
			if r.at < 0 && errors.Is(err, ErrNotAcquired) && before != nil {
				err = l.left(ctx, before) // this round was cut short and says nothing
			}
			return nil, err
		case r.final == nil:
			barred = time.Time{}
		case errors.Is(r.final, ErrUnavailable) && command.IsBarred(r.final) && l.admitted():
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
			return nil, l.left(ctx, before)
		}
	}
}

func (l *Redlock) quorum() int { return voting.Quorum(len(l.members)) }

// first is the engine of the first member.
func (l *Redlock) first() *engine.Engine { return l.whole.m.engine }

// admitted reports whether so many members have let their clients in before that a majority may do so again.
func (l *Redlock) admitted() bool {
	n := 0
	for _, h := range l.members {
		if h.m.engine.Executor.Admitted() {
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
func (l *Redlock) newGroup(ctx context.Context, retake func(g *group, member int)) *group {
	g := newGroup(&l.whole, l.quorum())
	g.redlock = l
	g.life, g.stop = context.WithCancel(context.WithoutCancel(ctx))
	g.retake = func(p *engine.Lease) { retake(g, l.memberOf(p)) }
	return g
}

// memberOf returns which member a vote is of.
func (l *Redlock) memberOf(p *engine.Lease) int {
	for i := range l.members {
		if l.members[i].m.engine == p.Engine() {
			return i
		}
	}
	return -1
}

// retake asks a member that is missing until it joins the lease, while that is valid
// without it.
func (l *Redlock) retake(g *group, member int) {
	pauses := retry.New()
	for engine.Sleep(g.life, pauses.NextBackOff()) {
		if !g.valid() {
			continue // not yet granted, or about to end
		}
		if l.lookForTwins(g.life, member); l.twin.Load() != nil {
			return // the lease lasts, and the next call fails
		}
		// Not observed: it may go on for hours, and is no acquire of the caller's.
		switch part, err := l.members[member].lock.Obtain(g.life, true, nil); {
		case err == nil:
			g.join(part)
			return
		case errors.Is(err, ErrClosed):
			return
		}
	}
}

// reenter returns a lease of the members that ctx carries leases of, if they are a majority. It sends no request.
// It returns nil if they are not.
func (l *Redlock) reenter(ctx context.Context) *engine.Lease {
	if ctx.Err() != nil || !engine.CarriesLeases(ctx) {
		return nil
	}
	g := l.newGroup(ctx, l.follow)
	var missing []int
	for i, h := range l.members {
		// Only a call that asks Redis reports a verdict.
		if part, _ := h.lock.Reenter(ctx); part != nil {
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
func (l *Redlock) follow(g *group, member int) {
	pauses := retry.New()
	for engine.Sleep(g.life, pauses.NextBackOff()) {
		if part, _ := l.members[member].lock.Reenter(g.life); part != nil {
			g.join(part)
			return
		}
	}
}
