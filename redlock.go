package holdfast

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/internal/command"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/several"
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
	members  []*handle
	whole    handle
	majority *several.Majority
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
	l := &Redlock{members: all, whole: wholeOf(engine.RedlockKind, name, all)}
	members := make([]several.Member, len(all))
	for i, h := range all {
		members[i] = several.Member{Engine: h.m.engine, Lock: &h.lock}
	}
	l.majority = several.NewMajority(&l.whole.lock, members, redlockCalls{l: l})
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
	return l.take(ctx, "TryLock", (*several.Majority).TryLock)
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
	return l.take(ctx, "Lock", func(m *several.Majority, ctx context.Context) (*engine.Lease, error) {
		ctx, over := l.whole.waiting(ctx)
		defer over()
		return m.Lock(ctx)
	})
}

// take is a method of l: Lock or TryLock, which is how the majority does it.
func (l *Redlock) take(ctx context.Context, call string, how func(*several.Majority, context.Context) (*engine.Lease, error)) (*Lease, error) {
	if err := checkCall(ctx, call, l.together()); err != nil {
		return nil, err
	}
	ctx, op := l.whole.observe(ctx, !part)
	lease, err := (*engine.Lease)(nil), l.whole.err
	if err == nil {
		lease, err = how(l.majority, ctx)
	}
	observed(op, (*Lease)(lease), err)
	return (*Lease)(lease), err
}

// together returns the handle of all locks; nil if l is.
func (l *Redlock) together() *handle {
	if l == nil {
		return nil
	}
	return &l.whole
}

// redlockCalls is a Redlock as package several calls it.
type redlockCalls struct {
	partCalls
	l *Redlock
}

// Take is Lock of a member or, unless it is to wait, TryLock.
func (c redlockCalls) Take(ctx context.Context, member int, wait bool) (*engine.Lease, error) {
	lease, err := c.l.members[member].takePart(ctx, !wait)
	return lease.inner(), err
}

// Twins makes the error of two members that are one server.
func (c redlockCalls) Twins(member, other int) error {
	reason := fmt.Sprintf("members %d and %d are the same server: give each a server of its own", member+1, other+1)
	return &OptionError{"NewRedlock", c.l.whole.lock.Name, reason}
}

// Owners returns the owners of a member; none if the caller could have it, as it could beside other readers.
func (c redlockCalls) Owners(ctx context.Context, member int) (string, error) {
	h := c.l.members[member]
	info, err := h.m.inspect(ctx, "Inspect", h.lock.Name)
	if err != nil || info.TTL == 0 || info.Kind == KindRead && h.lock.Kind.Shared() {
		return "", err
	}
	var owners []string
	for _, holder := range info.Holders {
		owners = append(owners, holder.Owner)
	}
	slices.Sort(owners)
	return strings.Join(owners, " ") + " ", nil // not nothing, even if it has no owner that can be read
}

// What the members of a Redlock did, as its errors tell it.

// impossible reports whether a member will refuse the lock to any further request.
func impossible(err error) bool {
	return !errors.Is(err, ErrNotAcquired) && (!errors.Is(err, ErrUnavailable) || command.IsFinal(err)) && err != several.ErrVoteLost
}

// NotGranted makes the error of a round. It is of one sentinel, and says what each member did.
func (c redlockCalls) NotGranted(ctx context.Context, b *several.Ballot) (err, final error) {
	spare := len(b.Members) - voting.Quorum(len(b.Members)) // so many may fail
	hopeless, failed, refused := 0, 0, 0
	var worst error
	for i, m := range b.Members {
		switch {
		case m.Answer == voting.Refused:
			refused++
		case m.Answer == voting.Failed && impossible(b.Errs[i]):
			if hopeless++; worst == nil {
				worst = b.Errs[i]
			}
		case m.Answer == voting.Failed, b.Over && b.Errs[i] != nil:
			failed++
		}
	}
	name := c.l.whole.lock.Name
	var causes []error
	if b.Over {
		causes = engine.ContextCauses(ctx)
	}
	switch {
	case hopeless > spare:
		return newLockError(sentinelOf(worst), name, told(b, memberError.whole)), worst
	case failed+hopeless > spare:
		return newLockError(ErrUnavailable, name, append(causes, told(b, memberError.bare))...), nil
	case refused == 0 && !b.Over:
		return newLockError(ErrUnavailable, name, errTooLate), nil
	}
	return newLockError(ErrNotAcquired, name, append(causes, told(b, memberError.bare))...), nil
}

// Left makes the error of a caller whose ctx has ended, where the last round ended with err.
func (c redlockCalls) Left(ctx context.Context, err error) error {
	sentinel, causes := ErrNotAcquired, engine.ContextCauses(ctx)
	if errors.Is(err, ErrUnavailable) {
		sentinel = ErrUnavailable
	}
	if round := (*lockError)(nil); errors.As(err, &round) {
		causes = append(causes, round.causes...)
	}
	return newLockError(sentinel, c.l.whole.lock.Name, causes...)
}

// Join makes the error of several parts, which have one name: it says which member did what.
func (c redlockCalls) Join(failures []several.Failure) error {
	var all errorList
	for _, f := range failures {
		member := slices.IndexFunc(c.l.members, func(h *handle) bool { return h.m.engine == f.Part.Engine() })
		all = append(all, memberError{member, len(c.l.members), f.Err})
	}
	return newLockError(sentinelOf(failures[0].Err), c.l.whole.lock.Name, all)
}

// told says what each member did that has not granted its vote.
func told(b *several.Ballot, as func(memberError) error) error {
	var all errorList
	for i, m := range b.Members {
		e := memberError{i, len(b.Members), b.Errs[i]}
		switch {
		case m.Answer == voting.Granted:
			continue
		case m.Answer == voting.Refused:
			e.err = errRefused
		case e.err == nil, errors.Is(e.err, command.ErrSilent):
			e.err = fmt.Errorf("%w in %v", command.ErrSilent, max(m.Lag, time.Since(b.Begun)).Round(time.Millisecond))
		}
		all = append(all, as(e))
	}
	return all
}

var errRefused = errors.New("held by another owner")

// memberError is what one member of a Redlock did.
type memberError struct {
	member, of int
	err        error
}

func (e memberError) Error() string {
	return fmt.Sprintf("member %d of %d: %v", e.member+1, e.of, bareError(e.err))
}

func (e memberError) Unwrap() error { return e.err }

// whole is e with the sentinel of its error, if asking that member again would bring the same answer.
func (e memberError) whole() error {
	if impossible(e.err) {
		return e
	}
	return e.bare()
}

// bare is e without the sentinel of its error: beside another sentinel it would be a second fact.
func (e memberError) bare() error {
	e.err = bareError(e.err)
	return e
}

// bareError is what err says of one lock, without the lock and without the sentinel.
func bareError(err error) error {
	var of *lockError
	var lost *LostError
	switch {
	case errors.As(err, &of) && len(of.causes) > 0:
		return errorList(of.causes)
	case of != nil:
		return errors.New(strings.TrimPrefix(of.sentinel.Error(), "holdfast: "))
	case errors.As(err, &lost):
		return fmt.Errorf("lease lost: %s", lost.Reason)
	}
	return err
}

// sentinelOf is what err is of.
func sentinelOf(err error) error {
	if of := (*lockError)(nil); errors.As(err, &of) {
		return of.sentinel
	}
	return err
}

// errorList is several errors in one line.
type errorList []error

func (l errorList) Error() string {
	texts := make([]string, len(l))
	for i, err := range l {
		texts[i] = err.Error()
	}
	return strings.Join(texts, "; ")
}

func (l errorList) Unwrap() []error { return l }
