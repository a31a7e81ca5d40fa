package holdfast

import (
	"context"
	"time"

	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/wire"
)

// Detach ends the lease, and keeps the lock taken for d, for the process that calls [Manager.Attach] with the ticket. Until then no
// process has a valid lease of the lock, and none renews it. If no process attaches it, the lock is free after d, and the next waiter
// gets it then, as after a crash. Use it for work that one process begins and another one finishes.
//
// A ticket is text for URLs, headers and JSON: of about 100 bytes and a third more than the name has, and at most 3 KiB. It has a secret:
// a process that reads it can attach the lock. Redis, [Manager.Inspect] and MONITOR show a digest only. The fencing token stays the same from Lock to the last
// Unlock, so a resource that has seen the work's token accepts it from the second process as well. A lease of a [Semaphore] leaves all its
// permits to the ticket: they count as held.
//
// The lease ends with [ErrReleased]. Detach returns
//
//   - [ErrInvalidOption] for a d below 10 ms, for a lease of several locks, for one with [WithHoldAtLeast], and for one that shares what its
//     process has in Redis with another lease: by re-entry, or of another reader. A reader with [WithMaxHold] or [WithFixedLease] does
//     not share. The lease stays as it is.
//   - [ErrNotHeld] after Unlock or Detach, and the reason why the lease had ended. Then Unlock releases what Redis may still have of it.
//   - [ErrLeaseLost] if Redis does not know the lease any more. No ticket works.
//   - [ErrUnavailable] if Redis has not confirmed. The ticket is returned with the error: it works if Redis has executed the request,
//     or does so later. Detach goes on in the background as an Unlock does, and calling Unlock waits for it. If Redis never executes the
//     request, the lock is free when the lease's TTL ends. Without a ticket nothing was sent: Redis has not confirmed a downgrade of this
//     owner, and the lease stays as it is.
//
// Detach blocks for as long as [Lease.Unlock] does, whether ctx is done or not: ctx carries the trace only. It sends one command.
func (l *Lease) Detach(ctx context.Context, d time.Duration) (ticket string, err error) {
	in, err := l.check("Detach")
	if err != nil {
		return "", err
	}
	if ctx == nil {
		return "", missing("Detach", "context")
	}
	if checkLease(&err, "Detach", d); err != nil {
		return "", err
	}
	if in.IsSeveral() {
		return "", &OptionError{"Detach", nil, "Detach: lock " + wire.Quote(l.Name()) + " is several locks"}
	}
	t, err := in.Detach(ctx, d)
	if t == nil {
		return "", err
	}
	return t.String(), err
}

// Attach takes over the lock of a ticket that [Lease.Detach] has returned, once. The lease has the name, kind, permits and token of the lease that
// was detached. It is renewed by the settings of this Manager and by opts. The ticket has the lock's key, so the name mapper of this
// Manager does not count.
//
// Of all calls with one ticket, at most one succeeds. Attach sends one command, and with [WithLinger] or [WithWanted] a second one in the
// background, which asks whether others wait. It does not wait for other owners: the ticket stands for the lock. It returns
//
//   - [ErrLeaseLost] if the ticket was used, if its time is over, or if the lock, or one of the permits, was taken away: by
//     [Manager.ForceUnlock] or [Manager.ForceUnlockOf], or with Redis's data.
//   - [ErrInvalidOption] for a text that is no ticket, for a bad option, and for [WithFencing] if the lock was taken without.
//   - [ErrUnavailable] if Redis did not answer within a second (twelve round trips where Redis is far away) or before ctx was done.
//     Redis may have executed the request. Then Attach goes back in the background: the ticket works again for what was left of its time.
//     Where the answer was lost, that is counted anew, so that the lock is kept for no less. If that fails as well, the lock is free when
//     the lease of Attach ends.
//   - [ErrClosed] after [Manager.Close].
func (m *Manager) Attach(ctx context.Context, ticket string, opts ...LockOption) (*Lease, error) {
	if err := m.check(ctx, "Attach"); err != nil {
		return nil, err
	}
	t, err := wire.ParseTicket(ticket)
	if err != nil {
		return nil, &OptionError{"Attach", nil, "Attach: " + err.Error()}
	}
	family, side, known := engine.KindOf(t)
	if !known || t.Permits > mostAtOnce {
		return nil, &OptionError{"Attach", nil, "Attach: the ticket is for a kind of lock that this version does not know"}
	}
	if t.Token != 0 {
		opts = append(opts[:len(opts):len(opts)], WithFencing())
	}
	if t.Permits > 0 {
		opts = append([]LockOption{permitsOf(t.Permits, t.Permits)}, opts...)
	}
	h := m.handleOf(family, t.Name, t.Key, nil, opts)
	h.lock = h.lock.Side(side)
	if h.err == nil && t.Token == 0 && h.lock.Terms.Fencing {
		h.err = &OptionError{"WithFencing", "Attach", "the lock " + wire.Quote(t.Name) + " was taken without a token"}
	}
	if h.err != nil {
		return nil, h.refused(ctx)
	}
	lease, err := h.lock.Attach(ctx, t)
	return (*Lease)(lease), err
}
