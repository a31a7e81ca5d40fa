package holdfast

import (
	"context"
	"errors"
	"time"

	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/wire"
)

// Lease is a caller's right to a lock, from the grant until Unlock or loss.
//
// A lease is a lock with an expiry time. While it is valid and Redis keeps its data, no other owner
// has a valid lease of this lock, except that readers share it. If it ends early (expiry, deletion,
// unresponsive Redis), Valid returns false from Deadline onwards, and Done is closed at about the
// same time.
//
// Nothing can stop code that ignores its lease. Stop work when the context of [Lease.Context] is
// done. Call [Lease.Valid] before each effect. If an overlap would do damage, pass
// [Lease.FencingToken] to the resource and let it refuse smaller ones.
//
// Any goroutine may use a lease. A copy of a lease acts on the same lease, and go vet reports it. A lease
// that is dropped without Unlock is renewed for as long as the process runs, or until [WithMaxHold] ends
// it. A nil lease, and a zero Lease, have ended: Valid returns false, and Err, Unlock and Extend return
// [ErrInvalidOption].
type Lease engine.Lease

// Name returns the name of the lock as the caller gave it, before any name mapper. For several
// locks it returns their names with + between.
func (l *Lease) Name() string {
	in, err := l.check("Name")
	if err != nil {
		return ""
	}
	return in.Name()
}

// FencingToken returns the fencing token of the grant. It returns [ErrInvalidOption] if the lock was
// taken without [WithFencing], and for a lease of several locks, which has no token. Of two grants of
// one lock that exclude each other, the later one has the larger token. Readers may share a token.
// Re-entry returns the same token, so an owner never fences itself.
//
// Tokens are not consecutive: a remote hand-off reserves 128 of them, and so does each grant by Redis
// of a lock with [WithLinger]. They are below 2^53, the largest integer that Redis's scripts count
// exactly. Store a token as a 64-bit integer. If the counter has reached the limit, Lock returns
// [ErrWrongKind].
//
// The counter lives in Redis, so tokens are as durable as Redis's data.
func (l *Lease) FencingToken() (uint64, error) {
	in, err := l.check("FencingToken")
	if err != nil {
		return 0, err
	}
	if token := in.Token(); token != 0 {
		return token, nil
	}
	why := "was taken without WithFencing"
	if in.IsSeveral() {
		why = "is several locks, which have no common token"
	}
	return 0, &OptionError{"WithFencing", nil, "FencingToken: lock " + wire.Quote(in.Name()) + " " + why}
}

// Token is [Lease.FencingToken] for logs and traces: it returns 0 if there is no token. Do not pass it
// to a resource, which may take 0 for a token.
func (l *Lease) Token() uint64 {
	in, err := l.check("Token")
	if err != nil {
		return 0
	}
	return in.Token()
}

// Deadline returns the time until which the lease claims exclusivity if no answer comes from Redis
// any more. Each renewal moves it on. Just after a remote hand-off the deadline is less than two
// seconds away, until the first renewal 25 ms later. Only the deadline of a Redlock can move back,
// when a member is lost.
func (l *Lease) Deadline() time.Time {
	in, err := l.check("Deadline")
	if err != nil {
		return time.Time{}
	}
	return in.Deadline()
}

// Valid reports, without I/O, whether the lease is held and now is before [Lease.Deadline].
//
// Valid looks at the monotonic and at the wall clock, because the first stops while the host sleeps
// and the second can be changed. [Lease.Err] may still be nil when Valid returns false, because a
// timer sets it. Valid narrows, but cannot close, the window in which a paused holder can do harm.
func (l *Lease) Valid() bool {
	in, err := l.check("Valid")
	if err != nil {
		return false
	}
	return in.Valid()
}

// Err returns nil while the lease is held, and then the reason why it ended: [ErrReleased],
// [ErrLeaseLost] (a *[LostError]), [ErrMaxHold] or [ErrClosed].
func (l *Lease) Err() error {
	in, err := l.check("Err")
	if err != nil {
		return err
	}
	return in.Err()
}

// Done returns a channel that is closed when the lease ends, for whatever reason. Each call returns
// the same channel.
func (l *Lease) Done() <-chan struct{} {
	in, err := l.check("Done")
	if err != nil {
		return noLease
	}
	return in.Done()
}

// noLease is the closed channel of Done of a nil lease.
var noLease = func() chan struct{} { c := make(chan struct{}); close(c); return c }()

// Unlock gives up the lease. After the last lease of its owner, the lock goes to the next caller in
// this process, or is released in Redis. Unlock returns nil if this call released the lock, or an
// earlier copy of its request did. Otherwise it returns
//
//   - [ErrLeaseLost] or [ErrMaxHold] if the lease had ended before the call.
//   - [ErrClosed] if [Manager.Close] ended the lease.
//   - [ErrNotHeld] after an Unlock that succeeded.
//   - [ErrUnavailable] if Redis has not confirmed the release in time.
//
// A lease that was valid when Unlock was called is never reported as lost because of what follows.
// If its TTL ends while Redis cannot be reached, Unlock returns nil.
//
// After ErrUnavailable the release is retried in the background, and calling Unlock again waits for
// it. Renewal has stopped in any case, so that the lock expires with its TTL at worst. The retries
// end when the TTL has passed, when Redis denies them for good (a wrong password or a missing right
// for 30 s, an unknown command), or when the client is closed. Calling Unlock after that begins
// again.
//
// Unlock blocks for at most a second, whether ctx is done or not: a quarter of the lease's TTL if
// that is shorter, but at least 100 ms, and twelve round trips where Redis is far away. ctx carries
// the trace only, and may be nil. Several locks are released at the same time. Unlock waits for all
// locks of a Multi, and for a majority of a Redlock's members, while the others go on.
func (l *Lease) Unlock(ctx context.Context) error {
	in, err := l.check("Unlock")
	if err != nil {
		return err
	}
	if ctx == nil {
		ctx = context.Background() // the lock must not stay held for that
	}
	return in.Unlock(ctx)
}

// UnlockInto is [Lease.Unlock] for a defer statement. It joins the error of Unlock to *err, which is the
// named result of the function:
//
//	func work(ctx context.Context) (err error) {
//		lease, err := lock.Lock(ctx)
//		if err != nil {
//			return err
//		}
//		defer lease.UnlockInto(ctx, &err)
//		return write(lease.Context(ctx))
//	}
//
// It joins what [Do] does: [ErrNotReleased] if Redis has not confirmed the release, nothing if
// *err contains the error already, and nothing if the lease was unlocked before. UnlockInto panics with
// an *[OptionError] if err is nil, after it has unlocked.
func (l *Lease) UnlockInto(ctx context.Context, err *error) {
	in, ended := l.check("UnlockInto")
	switch {
	case ended != nil:
	case in.Err() != ErrReleased:
		ended = l.Unlock(ctx)
	default:
		if ended = in.UnlockAgain(ctx); errors.Is(ended, ErrNotHeld) {
			ended = nil
		}
	}
	if ended != nil && unprotected(ended) == nil {
		ended = &ReleaseError{l.Name(), ended}
	}
	switch {
	case err == nil:
		panic(missing("UnlockInto", "pointer to the error"))
	case ended != nil && !errors.Is(*err, ended): // else the function's own error is left as it is
		*err = errors.Join(*err, ended)
	}
}

// Extend makes the lease last for at least d from now. It is for fixed leases. A lease that is
// renewed is prolonged too, in case renewals fail, and is renewed as often as before. A lease is
// never shortened.
//
// Extend returns
//
//   - [ErrLeaseLost], [ErrMaxHold] or [ErrClosed] if the lease has ended.
//   - [ErrNotHeld] after Unlock.
//   - [ErrInvalidOption] for a bad d, or one beyond [WithMaxHold].
//   - [ErrUnavailable] if Redis refused, or did not answer within a second (twelve round trips
//     where Redis is far away) or before ctx was done. It is also returned while Redis has not
//     confirmed a downgrade of this owner.
//
// After ErrUnavailable the lease may last as long as before or as long as requested: rely on
// [Lease.Deadline].
//
// Several locks are extended at the same time. Extend needs all locks of a Multi. It returns with a
// majority of a Redlock's members, while the others go on. After an error some of the locks may
// last longer.
func (l *Lease) Extend(ctx context.Context, d time.Duration) error {
	in, err := l.check("Extend")
	if err != nil {
		return err
	}
	if ctx == nil {
		return missing("Extend", "context")
	}
	var bad error
	if checkLease(&bad, "Extend", d); bad != nil {
		return bad
	}
	switch ended := in.StillHeld(); {
	case ended != nil:
		return ended
	case in.LimitedTo(d):
		return &OptionError{"Extend", d, "must not go beyond the end that WithMaxHold sets"}
	}
	return in.Extend(ctx, d)
}

// check returns l for the engine: the same object, which costs no second one, or the one that l is a copy of. It refuses a call of a
// method of no lease.
func (l *Lease) check(call string) (*engine.Lease, error) {
	if l == nil {
		return nil, missing(call, "lease")
	}
	in := (*engine.Lease)(l).Self()
	if in == nil { // l is a zero value
		return nil, &OptionError{call, nil, call + ": no lock has granted this lease"}
	}
	return in, nil
}

// Context returns a context derived from parent that carries the lease: a Lock of the same lock
// under it re-enters while the lease is held. Other locks are not affected.
//
// The context is cancelled when the lease ends, and [context.Cause] then returns [Lease.Err]. It is
// also cancelled when parent is. Do not pass the context that bounded the wait for the lock: its
// deadline would bound the work too.
//
// Context panics with an *[OptionError] if parent is nil.
//
// A context that is not used any more is garbage-collected. Parents that share a Done channel, such
// as a context and those that only add values to it, count as one: the lease keeps the first of
// them, a few hundred bytes, until that parent or the lease ends.
func (l *Lease) Context(parent context.Context) context.Context {
	if parent == nil {
		panic(missing("Lease.Context", "parent"))
	}
	in, err := l.check("Context")
	if err != nil {
		ctx, cancel := context.WithCancelCause(parent)
		cancel(err)
		return ctx
	}
	return in.Context(parent)
}

// WithoutOwner returns a copy of ctx that carries no lease. A Lock under it competes with the locks that
// are held under ctx, instead of re-entering them.
//
// Use it if the work under a lock fans out to goroutines that must exclude each other on that same
// lock. On all other locks they exclude each other without it. WithoutOwner panics with an
// *[OptionError] if ctx is nil.
func WithoutOwner(ctx context.Context) context.Context {
	if ctx == nil {
		panic(missing("WithoutOwner", "context"))
	}
	return engine.WithoutOwner(ctx)
}
