package holdfast

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v4"
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
// The lease is valid until the deadline that the majority shares: each member's is
// counted from before its request was sent, less a margin for drift. Members are
// renewed separately. A member that is lost is taken again only while the majority
// is still valid without it.
type Redlock struct {
	members []*handle
	whole   handle
}

// NewRedlock returns the lock of which each of locks is a member: one lock on each of
// several independent servers, so each of its own Manager. It returns ErrInvalidOption
// for fewer than three locks, for two of one Manager, and for what NewMulti does not take
// or is a *Multi itself.
func NewRedlock(locks ...Locker) (*Redlock, error) {
	all, err := handlesOf("NewRedlock", locks)
	if err != nil {
		return nil, err
	}
	if len(all) < 3 {
		return nil, &OptionError{"NewRedlock", len(all), "a majority that survives a failure takes three members"}
	}
	seen := make(map[*Manager]bool)
	for _, h := range all {
		if seen[h.m] {
			return nil, &OptionError{"NewRedlock", h.name, "two members of one Manager are not independent"}
		}
		seen[h.m] = true
	}
	return &Redlock{all, wholeOf(redlockKind, all)}, nil
}

func (l *Redlock) quorum() int { return len(l.members)/2 + 1 }

// TryLock asks all members at the same time and returns as soon as a majority has
// granted it, or cannot any more: ErrNotAcquired if that is because of another owner,
// ErrUnavailable if not enough members answered within a second. What the others have
// granted is given back.
func (l *Redlock) TryLock(ctx context.Context) (*Lease, error) {
	span := l.whole.m.telemetry.acquire(ctx, &l.whole)
	lease, _, err := l.round(span.ctx, nil)
	span.end(lease, err)
	return lease, err
}

// Lock waits until a majority grants the lock or ctx is done. Between two rounds it
// holds no member; it waits in the queue of the first member that refused it, so
// it is woken by a release and competes with whoever waits there in order. While too
// few members can be asked it keeps trying. Errors are those of Mutex.Lock.
func (l *Redlock) Lock(ctx context.Context) (*Lease, error) {
	span := l.whole.m.telemetry.acquire(ctx, &l.whole)
	lease, err := l.lock(span.ctx)
	span.end(lease, err)
	return lease, err
}

func (l *Redlock) lock(ctx context.Context) (*Lease, error) {
	pauses := newBackOff()
	var first *Lease // a member that was waited for
	for {
		lease, busy, err := l.round(ctx, first)
		if err == nil || ctx.Err() != nil {
			return lease, err
		}
		if !errors.Is(err, ErrNotAcquired) && !errors.Is(err, ErrUnavailable) {
			return nil, err
		}
		// Jitter, also after a refusal: two who took a member each must not do so again.
		if !sleep(ctx, pauses) {
			return nil, err
		}
		first = nil
		if busy != nil {
			first = wait(ctx, busy)
		}
	}
}

// wait waits in the queue of one member. It does so for no longer than its manager's
// poll interval, because the member may have died meanwhile.
func wait(ctx context.Context, h *handle) *Lease {
	ctx, cancel := context.WithTimeout(withOwner(ctx, new(owner)), h.m.poll)
	defer cancel()
	lease, _ := h.acquire(ctx, false)
	return lease
}

// sleep waits for the next pause and reports false if ctx ended first.
func sleep(ctx context.Context, pauses *backoff.ExponentialBackOff) bool {
	select {
	case <-time.After(pauses.NextBackOff() / 4):
		return true
	case <-ctx.Done():
		return false
	}
}

// vote is one member's answer.
type vote struct {
	member *handle
	lease  *Lease
	err    error
}

// round asks all members once, but for the one that first is of, which is held. It
// returns the first member that refused because of another owner.
func (l *Redlock) round(ctx context.Context, first *Lease) (_ *Lease, busy *handle, _ error) {
	if ctx.Err() != nil {
		if first != nil {
			first.giveBack()
		}
		return nil, nil, newLockError(ErrNotAcquired, l.whole.name, contextCauses(ctx)...)
	}
	o := ownerFrom(ctx)
	switch {
	case first != nil:
		o = first.owner
	case o == nil:
		o = new(owner)
	}
	asking, stop := context.WithCancel(withOwner(ctx, o))
	votes := make(chan vote, len(l.members))
	waiting := 0
	b := &ballot{need: l.quorum()}
	for _, h := range l.members {
		if first != nil && first.hold.entry.m == h.m {
			b.granted = append(b.granted, first)
			continue
		}
		waiting++
		go func() { // ends within a second or two, see Mutex.TryLock
			lease, err := h.acquire(asking, true)
			if lease != nil && !b.count(lease) {
				lease.giveBack() // the round is over
			}
			votes <- vote{h, lease, err}
		}()
	}
	var errs []error
	refused := make(map[*handle]bool)
	for ; waiting > 0 && !b.won() && len(l.members)-len(errs) >= b.need; waiting-- {
		if v := <-votes; v.err != nil {
			errs = append(errs, v.err)
			refused[v.member] = errors.Is(v.err, ErrNotAcquired)
		}
	}
	if parts, won := b.close(); won {
		lease := newGroupLease(&l.whole, parts, b.need, o, l.regain)
		b.attach(lease)
		// The slow members may still join; they are not waited for.
		context.AfterFunc(lease.Context(context.Background()), stop)
		if lease.Valid() {
			return lease, nil, nil
		}
		_ = lease.group.unlock(ctx, lease)
		errs = append(errs, errTooLate)
	} else {
		stop()
		for _, p := range parts {
			p.giveBack()
		}
	}
	others := 0
	for _, h := range l.members {
		if refused[h] {
			others++
			if busy == nil {
				busy = h
			}
		}
	}
	sentinel := ErrUnavailable
	if others > 0 && len(errs)-others < b.need {
		sentinel = ErrNotAcquired
	}
	return nil, busy, newLockError(sentinel, l.whole.name, append(contextErrors(ctx), errors.Join(errs...))...)
}

// contextErrors are the causes of ctx's end, none if it has not ended.
func contextErrors(ctx context.Context) []error {
	if ctx.Err() == nil {
		return nil
	}
	return contextCauses(ctx)
}

// ballot counts the grants of one round. A grant that comes after the round was won
// joins the lease, one that comes after it was lost is given back.
type ballot struct {
	need int

	mu      sync.Mutex // guards the following
	granted []*Lease
	lost    bool
	lease   *Lease // once won and built
}

// count takes a grant; it reports false if nobody wants it any more.
func (b *ballot) count(p *Lease) bool {
	b.mu.Lock()
	lease := b.lease
	switch {
	case b.lost:
		b.mu.Unlock()
		return false
	case lease == nil:
		b.granted = append(b.granted, p)
		b.mu.Unlock()
		return true
	}
	b.mu.Unlock()
	return lease.addPart(p)
}

func (b *ballot) won() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.granted) >= b.need
}

// close ends the round and returns the grants so far.
func (b *ballot) close() (parts []*Lease, won bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	won = len(b.granted) >= b.need
	b.lost = !won
	parts, b.granted = b.granted, nil
	return parts, won
}

// attach makes grants that are still to come, or came meanwhile, part of the lease.
func (b *ballot) attach(lease *Lease) {
	b.mu.Lock()
	b.lease = lease
	late := b.granted
	b.granted = nil
	b.mu.Unlock()
	for _, p := range late {
		if !lease.addPart(p) {
			p.giveBack()
		}
	}
}

// regain takes a lost member again, for as long as the others are a valid majority: a
// member that was taken again after the majority had lapsed could have voted for
// somebody else in between.
func (l *Redlock) regain(whole, lost *Lease) {
	var h *handle
	for _, member := range l.members {
		if member.m == lost.hold.entry.m {
			h = member
		}
	}
	ctx := whole.Context(context.Background())
	go func() { // ends with the lease, or when the member is back
		pauses := newBackOff()
		for sleep(ctx, pauses) && whole.Valid() {
			part, err := h.acquire(ctx, true)
			switch {
			case errors.Is(err, ErrClosed):
				return
			case err != nil:
				continue
			}
			if !whole.Valid() || !whole.addPart(part) {
				part.giveBack()
			} else if err := part.Err(); err != nil {
				whole.partEnded(part, err)
			}
			return
		}
	}()
}
