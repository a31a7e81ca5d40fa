package holdfast

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/internal/command"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/retry"
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
	whole   handle
	vain    []atomic.Int64 // by member: until when it comes behind the others, after Engine.epoch of whole; see shun
}

// NewRedlock returns the lock whose members are locks: one on each of several independent servers,
// each with a Manager of its own.
//
// It returns [ErrInvalidOption] for fewer than three locks, for two locks of one Manager, for read
// sides beside other locks (two majorities that only share readers would not exclude each other),
// for a *[Multi], and for arguments that [NewMulti] does not take.
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
	for _, h := range all {
		if seen[h.m] {
			return nil, &OptionError{"NewRedlock", h.lock.Name, "two members of one Manager are not independent"}
		}
		if (h.lock.Kind == engine.ReadKind) != (all[0].lock.Kind == engine.ReadKind) {
			return nil, &OptionError{"NewRedlock", h.lock.Name, "read sides and other locks must not be mixed"}
		}
		seen[h.m] = true
	}
	name := strings.Join(slices.Compact(namesOf(all)), "+") // mostly the same everywhere
	return &Redlock{all, wholeOf(engine.RedlockKind, name, all), make([]atomic.Int64, len(all))}, nil
}

func (l *Redlock) quorum() int { return voting.Quorum(len(l.members)) }

// TryLock sends a request to all members at the same time. It returns as soon as a majority has
// granted the lock, or shortly after a majority has become impossible: grants are then released. A
// member that is late, compared with those that answered, counts as missing if another owner holds
// one of the others.
//
// TryLock returns [ErrNotAcquired] if another owner holds the lock, and [ErrUnavailable] if too few
// members answered in the time that [Mutex.TryLock] gives each. Both say what each member did.
// Other errors are those of Mutex.TryLock.
func (l *Redlock) TryLock(ctx context.Context) (*Lease, error) {
	if err := checkCall(ctx, "TryLock", l.together()); err != nil {
		return nil, err
	}
	ctx, op := l.whole.observe(ctx, !part)
	lease, err := l.reenter(ctx), error(nil)
	if lease == nil {
		r := l.round(ctx, nil)
		giveBackAll(r.kept)
		lease, err = r.lease, r.err
	}
	observed(op, lease, err)
	return lease, err
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
	if err := checkCall(ctx, "Lock", l.together()); err != nil {
		return nil, err
	}
	ctx, op := l.whole.observe(ctx, !part)
	lease, err := l.reenter(ctx), error(nil)
	if lease == nil {
		lease, err = l.lock(ctx)
	}
	observed(op, lease, err)
	return lease, err
}

func (l *Redlock) lock(ctx context.Context) (*Lease, error) {
	pauses := retry.New()
	var votes []*Lease   // that the next round begins with
	var before error     // of the round before
	var barred time.Time // when too few members first let their clients; zero: they have
	for {
		r := l.round(ctx, votes)
		switch err := r.err; {
		case err == nil:
			if before != nil {
				r.lease.inner().Waited()
			}
			return r.lease, nil
		case errors.Is(err, context.Cause(ctx)):
			giveBackAll(r.kept)
			if r.at < 0 && errors.Is(err, ErrNotAcquired) && before != nil {
				err = l.ended(ctx, before) // this round was cut short and says nothing
			}
			return nil, err
		case r.final == nil:
			barred = time.Time{}
		case errors.Is(r.final, ErrUnavailable) && command.IsBarred(r.final) && l.admitted():
			if barred.IsZero() {
				barred = time.Now()
			}
			if time.Since(barred) >= l.whole.m.engine.Readmission {
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
			return nil, l.ended(ctx, before)
		}
	}
}

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

func giveBackAll(votes []*Lease) {
	for _, p := range votes {
		p.inner().GiveBack()
	}
}

// ended is the error of a caller whose ctx has ended, where the last round ended with err.
func (l *Redlock) ended(ctx context.Context, err error) error {
	sentinel, causes := ErrNotAcquired, engine.ContextCauses(ctx)
	if errors.Is(err, ErrUnavailable) {
		sentinel = ErrUnavailable
	}
	if round := (*lockError)(nil); errors.As(err, &round) {
		causes = append(causes, round.causes...)
	}
	return newLockError(sentinel, l.whole.lock.Name, causes...)
}

// retake asks a member that is missing until it joins the lease, while that is valid
// without it.
func (l *Redlock) retake(whole *Lease, h *handle) {
	pauses := retry.New()
	for engine.Sleep(whole.together().life, pauses.NextBackOff()) {
		if !whole.Valid() {
			continue // not yet granted, or about to end
		}
		// Not observed: it may go on for hours, and is no acquire of the caller's.
		switch part, err := h.obtain(whole.together().life, true, nil); {
		case err == nil:
			whole.join(part)
			return
		case errors.Is(err, ErrClosed):
			return
		}
	}
}

// together returns the handle of all locks; nil if l is.
func (l *Redlock) together() *handle {
	if l == nil {
		return nil
	}
	return &l.whole
}

// reenter returns a lease of the members that ctx carries leases of, if they are a majority: no
// member is asked. It returns nil if they are not.
func (l *Redlock) reenter(ctx context.Context) *Lease {
	if l.whole.err != nil || ctx.Err() != nil || !engine.CarriesLeases(ctx) {
		return nil
	}
	whole := newGroupLease(&l.whole, l.quorum())
	g := whole.together()
	g.life, g.stop = context.WithCancel(context.WithoutCancel(ctx))
	g.retake = func(whole, p *Lease) { l.follow(whole, l.members[memberOf(l.members, p)]) }
	var missing []*handle
	for _, h := range l.members {
		if part := h.reenter(ctx); part != nil {
			whole.join(part)
		} else {
			missing = append(missing, h)
		}
	}
	if g.count() < g.need || !whole.Valid() {
		whole.dissolve()
		return nil
	}
	for _, h := range missing {
		g.work.Go(func() { l.follow(whole, h) })
	}
	return whole
}

// follow re-enters a member that is missing in a lease taken by re-entry once the outer lease
// has it. Asking for it would compete with the outer lease, which asks as well.
func (l *Redlock) follow(whole *Lease, h *handle) {
	pauses := retry.New()
	for engine.Sleep(whole.together().life, pauses.NextBackOff()) {
		if part := h.reenter(whole.together().life); part != nil {
			whole.join(part)
			return
		}
	}
}
