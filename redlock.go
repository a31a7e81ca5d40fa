package holdfast

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/internal/command"
)

// Redlock is one lock on several independent Redis servers, held while a majority of
// them grants it, after the algorithm of that name (redis.io, "Distributed Locks with
// Redis").
//
// What it gives: the lock survives the loss of a minority of the servers, and none of
// them is asked to replicate. What it does not give, as Martin Kleppmann has pointed
// out: it is a lease like any other, so a holder that is paused beyond it overlaps with
// the next one; it has no fencing token; and it rests on clocks that run at about the
// same rate and on servers that do not lose their data: one that restarts empty within
// the TTL can give its vote a second time. Salvatore Sanfilippo's answer, that the time
// spent on acquiring is taken off the validity, that delays after that hit every lease
// alike, and that a restarted server should stay away for a TTL, is right as far as
// it goes. If an overlap only wastes work, one server is simpler and cheaper; if
// it corrupts data, use a store with consensus, or fencing on one server. Redisson has
// deprecated its own.
//
// The lease is valid until the deadline that a majority shares: each member's is
// counted from before its request was sent, less a margin for drift. Members are
// renewed separately. Missing ones, which were down or have been lost, are asked again
// while the lease is valid without them. Once it has not been for a moment they are never asked again:
// they could have voted for somebody else in between. A member that was lost is not asked again with WithFixedLease
// or WithMaxHold, or the lease could outlast them.
type Redlock struct {
	members []*handle
	whole   handle
}

// NewRedlock returns the lock whose members are locks: one on each of several independent
// servers, so each with a Manager of its own. It returns ErrInvalidOption for fewer than
// three locks, for two of one Manager, for read sides beside others (two majorities that
// only share readers would not exclude each other), for a *Multi, and for what NewMulti
// does not take.
//
// The order of waiters is kept by one member at a time. So a Redlock of fair locks is
// mostly in order and does not promise it, and in one of read-write locks a writer can
// starve while readers always overlap.
func NewRedlock(locks ...Locker) (*Redlock, error) {
	all, err := handlesOf("NewRedlock", locks)
	if err != nil {
		return nil, err
	}
	if len(all) < 3 {
		return nil, &OptionError{"NewRedlock", len(all), "needs at least three locks, so that a majority survives the loss of one"}
	}
	seen := make(map[*Manager]bool)
	for _, h := range all {
		if seen[h.m] {
			return nil, &OptionError{"NewRedlock", h.name, "two members of one Manager are not independent"}
		}
		if (h.kind == readKind) != (all[0].kind == readKind) {
			return nil, &OptionError{"NewRedlock", h.name, "read sides beside other locks: majorities that only share readers exclude nobody"}
		}
		seen[h.m] = true
	}
	name := strings.Join(slices.Compact(namesOf(all)), "+") // mostly the same everywhere
	return &Redlock{all, wholeOf(redlockKind, name, all)}, nil
}

func (l *Redlock) quorum() int { return len(l.members)/2 + 1 }

// TryLock asks all members at the same time and returns as soon as a majority has
// granted it, or a moment after it cannot any more: ErrNotAcquired if that is because of another owner,
// ErrUnavailable if not enough members answered in the time that Mutex.TryLock gives each. What was
// granted is then given back. Otherwise errors are those of Mutex.TryLock.
func (l *Redlock) TryLock(ctx context.Context) (*Lease, error) {
	ctx, op := l.whole.m.telemetry.acquire(ctx, &l.whole, !part)
	lease, err := l.reenter(ctx), error(nil)
	if lease == nil {
		lease, _, err = l.round(ctx, nil)
	}
	op.acquired(lease, err)
	return lease, err
}

// Lock waits until a majority grants the lock or ctx is done. Between two rounds it
// holds no member; it waits in the queue of the first member that refused it, so it is
// woken by a release and served in order there. Once a second it checks that this is the
// right place to wait: that the member answers, and that no majority is free elsewhere.
// While too few members can be asked it keeps trying, but not if that is because they deny it (see
// Mutex.Lock). Errors are those of Mutex.Lock.
func (l *Redlock) Lock(ctx context.Context) (*Lease, error) {
	ctx, op := l.whole.m.telemetry.acquire(ctx, &l.whole, !part)
	lease, err := l.reenter(ctx), error(nil)
	if lease == nil {
		lease, err = l.lock(ctx)
	}
	op.acquired(lease, err)
	return lease, err
}

func (l *Redlock) lock(ctx context.Context) (*Lease, error) {
	pauses := newBackOff()
	var first *Lease     // a member that was waited for
	var before error     // of the round before
	var barred time.Time // when too few members first let their clients; zero: they have
	for {
		lease, busy, err := l.round(ctx, first)
		switch {
		case err == nil:
			if before != nil {
				lease.how = max(lease.how, grantedAfterWait)
			}
			return lease, nil
		case errors.Is(err, context.Cause(ctx)):
			if busy == nil && errors.Is(err, ErrNotAcquired) && before != nil {
				err = l.ended(ctx, before) // this round was cut short and says nothing
			}
			return nil, err
		case !errors.Is(err, ErrNotAcquired) && !errors.Is(err, ErrUnavailable):
			return nil, err
		case command.IsBarred(err) && l.admitted():
			if barred.IsZero() {
				barred = time.Now()
			}
			if time.Since(barred) >= l.whole.m.readmission {
				return nil, err
			}
		case command.IsFinal(err):
			return nil, err
		default:
			barred = time.Time{}
		}
		before = err
		// Jitter, also after a refusal: two who took a member each must not do so again.
		first = nil
		if sleep(ctx, pauses.NextBackOff()/4) && busy != nil {
			if first = l.wait(ctx, busy); first != nil {
				pauses.Reset()
			}
		}
		if ctx.Err() != nil {
			if first != nil {
				first.giveBack()
			}
			return nil, l.ended(ctx, err)
		}
	}
}

// admitted reports whether so many members have let their clients in before that a majority may do so again.
func (l *Redlock) admitted() bool {
	n := 0
	for _, h := range l.members {
		if h.m.executor.Admitted() {
			n++
		}
	}
	return n >= l.quorum()
}

// ended is the error of a caller whose ctx has ended, where the last round ended with err.
func (l *Redlock) ended(ctx context.Context, err error) error {
	sentinel, causes := ErrNotAcquired, contextCauses(ctx)
	if errors.Is(err, ErrUnavailable) {
		sentinel = ErrUnavailable
		if round := (*lockError)(nil); errors.As(err, &round) {
			causes = append(causes, round.causes...)
		}
	}
	return newLockError(sentinel, l.whole.name, causes...)
}

// sleep reports false if ctx ended first.
func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// lookAfter is how often a waiter looks whether it waits in the right place.
const lookAfter = time.Second

// wait waits in the queue of one member; nil if it had better ask all.
func (l *Redlock) wait(ctx context.Context, at *handle) *Lease {
	ctx, leave := context.WithCancel(ctx)
	looked := make(chan struct{})
	go func() {
		defer close(looked)
		defer leave()
		for sleep(ctx, lookAfter-rand.N(lookAfter/5)) && l.rightPlace(ctx, at) {
		}
	}()
	lease, _ := at.acquirePart(ctx, false)
	leave()
	<-looked
	return lease
}

// rightPlace reports whether member at answers and no majority could be taken now: is
// free or, where a reader asks, held by readers.
func (l *Redlock) rightPlace(ctx context.Context, at *handle) bool {
	var free atomic.Int32
	looks := make(chan bool, len(l.members))
	for _, h := range l.members {
		go func() { // for a second at most, and not beyond ctx
			info, err := h.m.Inspect(ctx, h.name)
			if err == nil && (info.TTL == 0 || info.Kind == KindRead && h.kind == readKind) {
				free.Add(1)
			}
			looks <- h != at || err == nil
		}()
	}
	answers := true
	for range l.members {
		answers = <-looks && answers
	}
	return answers && int(free.Load()) < l.quorum()
}

// vote is one member's answer to one round.
type vote struct {
	member *handle
	err    error
}

// round asks all members once, but for the one that first is of, which is held. It
// returns the first member that refused because of another owner.
func (l *Redlock) round(ctx context.Context, first *Lease) (_ *Lease, busy *handle, _ error) {
	whole := newGroupLease(&l.whole, l.quorum())
	g := whole.group
	// Members may join after Lock has returned and its ctx has ended.
	g.life, g.stop = context.WithCancel(context.WithoutCancel(ctx))
	g.retake = l.retake
	if first != nil {
		whole.join(first)
	}
	if err := l.whole.err; err != nil || ctx.Err() != nil {
		whole.dissolve()
		if err == nil {
			err = newLockError(ErrNotAcquired, l.whole.name, contextCauses(ctx)...)
		}
		return nil, nil, err
	}
	begun := time.Now()
	votes := make(chan vote, len(l.members))
	waiting := 0
	for _, h := range l.members {
		if first != nil && first.hold.entry.m == h.m {
			continue
		}
		waiting++
		g.work.Go(func() { // ends with the lease, or when the member has joined it
			part, err := h.acquirePart(g.life, true)
			if err == nil {
				whole.join(part)
			}
			votes <- vote{h, err}
			if err != nil {
				l.retake(whole, h)
			}
		})
	}
	var t tally
	var enough <-chan time.Time // once the round is lost
	for done := false; !done && waiting > 0 && g.count() < g.need && ctx.Err() == nil; {
		select {
		case v := <-votes:
			waiting--
			t.add(v)
		case <-enough:
			done = true
		case <-ctx.Done():
		}
		if enough == nil && t.failed() > len(l.members)-g.need {
			// The others are given as long again, so that all candidates tend to name the
			// same first refuser, in whose queue they then wait.
			enough = time.After(min(time.Since(begun), lookAfter/10))
		}
	}
	if ctx.Err() == nil && whole.Valid() {
		return whole, nil, nil
	}
	whole.dissolve()
	return nil, l.firstOf(t.refused), l.notGranted(ctx, &t, time.Since(begun))
}

// tally are the members that did not grant the lock, by what that says.
type tally struct {
	refused     []*handle // another owner has it
	unavailable []error
	impossible  []error // it will not be granted by asking again
}

func (t *tally) failed() int { return len(t.refused) + len(t.unavailable) + len(t.impossible) }

func (t *tally) add(v vote) {
	switch {
	case v.err == nil:
	case errors.Is(v.err, ErrNotAcquired):
		t.refused = append(t.refused, v.member)
	case errors.Is(v.err, ErrUnavailable) && !command.IsFinal(v.err):
		t.unavailable = append(t.unavailable, v.err)
	default:
		t.impossible = append(t.impossible, v.err)
	}
}

// firstOf returns the first of some members in the order of all, so that those who
// wait do so in the same place; nil if there is none.
func (l *Redlock) firstOf(some []*handle) *handle {
	for _, h := range l.members {
		if slices.Contains(some, h) {
			return h
		}
	}
	return nil
}

// notGranted is the error of a round. It names one fact only: the errors of members
// that say something else are not joined to it.
func (l *Redlock) notGranted(ctx context.Context, t *tally, took time.Duration) error {
	spare := len(l.members) - l.quorum() // so many may fail
	var causes []error
	if ctx.Err() != nil {
		causes = contextCauses(ctx)
	}
	switch name := l.whole.name; {
	case len(t.impossible) > spare:
		return errors.Join(t.impossible...)
	case len(t.unavailable)+len(t.impossible) > spare:
		causes = append(causes, t.unavailable...)
		return newLockError(ErrUnavailable, name, causes...)
	case len(t.refused) > 0:
		return newLockError(ErrNotAcquired, name, causes...)
	case ctx.Err() == nil:
		return newLockError(ErrUnavailable, name, errTooLate)
	case took >= silence:
		return newLockError(ErrUnavailable, name, append(causes, errSilent)...)
	default:
		return newLockError(ErrNotAcquired, name, causes...)
	}
}

// retake asks a member that is missing until it joins the lease, while that is valid
// without it.
func (l *Redlock) retake(whole *Lease, h *handle) {
	pauses := newBackOff()
	for sleep(whole.group.life, pauses.NextBackOff()) {
		if !whole.Valid() {
			continue // not yet granted, or about to end
		}
		// Not observed: it may go on for hours, and is no acquire of the caller's.
		switch part, err := h.obtain(whole.group.life, request{once: true}); {
		case err == nil:
			whole.join(part)
			return
		case errors.Is(err, ErrClosed):
			return
		}
	}
}
