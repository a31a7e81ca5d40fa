package holdfast

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/lock"
	"github.com/holdfast-go/holdfast/internal/protocol"
	"github.com/holdfast-go/holdfast/internal/validity"
	"github.com/holdfast-go/holdfast/internal/wire"
)

// Semaphore lets callers of all processes hold at most a number of permits at a time. It is shared with Redisson's
// RPermitExpirableSemaphore of the same name, whose clients need clocks within a second of the Redis server's. Redisson's RSemaphore
// does not record the holders of its permits, and must not have the same name.
//
// A Semaphore is a handle, as a [Mutex] is. Each permit is part of a lease: it is renewed while its process lives, and returns to the
// semaphore at the end of its TTL if the process dies. [Lease.Unlock] returns all permits of the lease, and [Lease.Detach] leaves all of
// them to another process.
//
// A Semaphore is not re-entrant: each call takes permits of its own. It has no fencing tokens, because several holders are valid at
// once: a [WithFencing] given to [New] does not count for it. A majority of several servers would not bound the holders, so [NewRedlock]
// does not take one. [NewMulti] does.
//
// Processes take turns in the order in which they began to wait, and the callers of a process come in the order of their calls. No
// place in that order is passed by one that wants fewer permits. A lease that is unlocked goes to the next caller of the process,
// without a command, if that one wants as many permits with the same options, for at most [WithHandoffSlice] while another process waits.
type Semaphore struct {
	m       *Manager
	name    string
	permits int
	opts    []LockOption
	one     handle   // for a single permit
	more    sync.Map // the handles for other numbers, by these; at most mostAtOnce
}

const (
	mostPermits = 1 << 20 // of a semaphore
	mostAtOnce  = 1000    // of a lease
)

// Semaphore returns a handle of the named semaphore, which has the given number of permits, from 1 to 1,048,576. The first call of
// Acquire or TryAcquire stores the number in Redis. A number that is there already wins: see [Semaphore.SetPermits]. The first call on
// the handle returns an error if the name, the number or an option is bad: WithFencing, WithValue, and a [WithLinger] that is not 0.
func (m *Manager) Semaphore(name string, permits int, opts ...LockOption) *Semaphore {
	s := &Semaphore{m: m, name: name, permits: permits, opts: opts}
	s.one = s.handle(1)
	return s
}

// handle makes the handle for n permits at a time.
func (s *Semaphore) handle(n int) handle {
	h := s.m.newHandle(lock.SemaphoreKind, s.name, append([]LockOption{permitsOf(n, s.permits)}, s.opts...))
	if h.err == nil && (s.permits < 1 || s.permits > mostPermits) {
		h.err = &OptionError{"Semaphore", s.permits, fmt.Sprintf("must have from 1 to %d permits", mostPermits)}
	}
	return h
}

// permitsOf is what n of total permits add to the options of New.
func permitsOf(n, total int) LockOption {
	return lockOption(func(c *lockConfig) {
		c.terms.Permits, c.terms.Total, c.terms.Fencing, c.terms.Value = n, total, false, ""
	})
}

// WithIdleTTL has Redis forget a semaphore d after its last Acquire, or when its last lease ends if that is later. It is for names
// without number, such as one per customer. Without it the number of permits that are available stays in Redis. d must not be
// shorter than the lease.
func WithIdleTTL(d time.Duration) LockOption {
	return lockOption(func(c *lockConfig) {
		if d < validity.MinTTL || d > validity.MaxTTL {
			fail(&c.err, "WithIdleTTL", d, "must be between 10ms and 100 years")
		}
		c.terms.Idle = d
	})
}

// Acquire takes n permits, from 1 to 1,000, all or none, and waits for them until ctx is done. The lease has all of them. While it waits
// it is like [Mutex.Lock], and it returns
//
//   - [ErrInvalidOption] if n is out of range, or the semaphore has fewer permits, in Redis and in this handle. If only the number in
//     Redis is smaller, because it was cut, Acquire lets callers that want fewer go first, and waits.
//   - [ErrWouldDeadlock] if ctx carries leases of this semaphore that leave fewer than n of the permits of the handle.
//   - [ErrWrongKind] if one of the two keys of the semaphore holds something else. Nothing was changed.
//   - what [Mutex.Lock] returns.
func (s *Semaphore) Acquire(ctx context.Context, n int) (*Lease, error) {
	return s.take(ctx, "Acquire", n, false)
}

// TryAcquire takes n permits if they are available and no other caller waits. Otherwise it returns [ErrNotAcquired]. Apart from that it
// is like Acquire, and blocks for as long as [Mutex.TryLock].
func (s *Semaphore) TryAcquire(ctx context.Context, n int) (*Lease, error) {
	return s.take(ctx, "TryAcquire", n, true)
}

func (s *Semaphore) take(ctx context.Context, call string, n int, once bool) (*Lease, error) {
	h, err := s.side(call, n)
	if err != nil {
		return nil, err
	}
	return h.take(ctx, call, once)
}

// AcquireAsync is Acquire without the wait: exactly one [Result] arrives on the returned channel, as for [Mutex.LockAsync].
func (s *Semaphore) AcquireAsync(ctx context.Context, n int) <-chan Result {
	h, err := s.side("AcquireAsync", n)
	if err != nil {
		result := make(chan Result, 1)
		result <- Result{Err: err}
		return result
	}
	return h.takeAsync(ctx, "AcquireAsync")
}

// Locker returns a [Locker] whose Lock is Acquire of n permits, and whose TryLock is TryAcquire: for [Do], [NewMulti] and [SyncLocker].
func (s *Semaphore) Locker(n int) Locker { return permits{s, n} }

// permits is what Locker returns.
type permits struct {
	s *Semaphore
	n int
}

func (p permits) Lock(ctx context.Context) (*Lease, error)    { return p.s.Acquire(ctx, p.n) }
func (p permits) TryLock(ctx context.Context) (*Lease, error) { return p.s.TryAcquire(ctx, p.n) }

// side returns the handle for n permits at a time. The handle of a semaphore that is nil, or that no Manager has made, refuses its call.
func (s *Semaphore) side(call string, n int) (*handle, error) {
	switch {
	case s == nil:
		return nil, nil
	case n == 1 || !s.one.made():
		return &s.one, nil
	case n < 1 || n > mostAtOnce:
		return nil, &OptionError{call, n, fmt.Sprintf("takes from 1 to %d permits", mostAtOnce)}
	}
	h, ok := s.more.Load(n)
	if !ok {
		made := s.handle(n)
		h, _ = s.more.LoadOrStore(n, &made)
	}
	return h.(*handle), nil
}

// SetPermits sets how many permits the semaphore has, from 0 to 1,048,576, for all processes. 0 pauses it. Permits that are held stay
// held: after a cut, none is granted until enough have come back. SetPermits also repairs a number that was damaged in Redis. A number
// that was not there before is kept for the time of [WithIdleTTL].
//
// It blocks as [Manager.Inspect] does, and returns the error of the handle, [ErrInvalidOption], [ErrWrongKind], [ErrClosed], or
// [ErrUnavailable] if Redis did not answer: the number may have been set. It can be called again.
func (s *Semaphore) SetPermits(ctx context.Context, n int) error {
	h, err := s.side("SetPermits", 1)
	if err == nil {
		err = checkCall(ctx, "SetPermits", h)
	}
	switch {
	case err != nil:
		return err
	case h.err != nil:
		return h.err
	case n < 0 || n > mostPermits:
		return &OptionError{"SetPermits", n, fmt.Sprintf("sets from 0 to %d permits", mostPermits)}
	}
	keys, process := wire.SemaphoreKeys(h.lock.Mapped), &s.m.engine.Process
	offer := protocol.Offer(validity.Milliseconds(h.lock.Terms.Claim), 1, process.Counted)
	args := append(keys, n, process.Publish, offer)
	if idle := h.lock.Terms.Idle; idle > 0 {
		args = append(args, validity.Milliseconds(idle))
	}
	value, err := s.m.engine.Ask(ctx, s.name, engine.Repeatable, protocol.PermitSet, protocol.PermitSet.Args(len(keys), args...))
	if err != nil {
		return err
	}
	switch _, wrong, ok := protocol.ParseProclaimed(value); {
	case !ok:
		return engine.NewError(ErrUnavailable, s.name, protocol.Unexpected(value))
	case wrong != nil:
		return engine.NewError(ErrWrongKind, s.name, wrong)
	}
	return nil
}

// Permits returns how many permits of a [Semaphore] the lease has; 0: it is of another kind, or of several locks.
func (l *Lease) Permits() int {
	in, err := l.check("Permits")
	if err != nil {
		return 0
	}
	return in.Permits()
}
