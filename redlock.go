package holdfast

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/holdfast-go/holdfast/internal/command"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/lock"
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
	whole    handle // the locks together
	majority *engine.Majority
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
	l := &Redlock{whole: wholeOf(lock.RedlockKind, name, all)}
	l.majority = engine.NewMajority(&l.whole.lock, locksOf(all))
	return l, nil
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
	return l.together().takeWhole(ctx, "TryLock", true, func(ctx, _ context.Context) (*engine.Lease, error) {
		return l.majority.TryLock(ctx)
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
	return l.together().takeWhole(ctx, "Lock", false, func(ctx, _ context.Context) (*engine.Lease, error) {
		return l.majority.Lock(ctx)
	})
}

// together returns the handle of all locks; nil if l is.
func (l *Redlock) together() *handle {
	if l == nil {
		return nil
	}
	return &l.whole
}
