package holdfast

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast/internal/command"
	"github.com/holdfast-go/holdfast/internal/validity"
)

// renewBatch is how many locks one renewal request carries: a script of 100 keys
// blocks Redis for about a tenth of a millisecond and, with names of usual length,
// fits into the 16 KB that Redis reads from a connection at a time. Redisson's default
// is the same.
const renewBatch = 100

// renew is called by the scheduler with the holds that are due.
func (m *Manager) renew(due []*hold) {
	most := renewBatch
	if m.cluster {
		most = 1 // keys of one script must share a slot; the requests share a pipeline
	}
	// A request has one TTL; mostly there is only one.
	slices.SortStableFunc(due, func(a, b *hold) int { return cmp.Compare(a.cfg.ttl, b.cfg.ttl) })
	var calls []*command.Call
	for len(due) > 0 {
		n := 1
		for n < min(most, len(due)) && due[n].cfg.ttl == due[0].cfg.ttl {
			n++
		}
		calls = append(calls, m.newRenewal(due[0].cfg.ttl, due[:n:n]...))
		due = due[n:]
	}
	m.executor.Submit(calls...) // refused only once Close has ended all holds
}

// renewRequest is one request for the renewal of several holds.
type renewRequest struct {
	m     *Manager
	ttl   time.Duration
	holds []*hold
	call  command.Call
}

func (m *Manager) newRenewal(ttl time.Duration, holds ...*hold) *command.Call {
	r := &renewRequest{m: m, ttl: ttl, holds: holds}
	r.call = command.Call{
		Script:   renewScript,
		Args:     renewArgs(ttl, holds...),
		Handler:  r,
		Patience: closePatience, // Overdue has nothing to do: the scheduler asks again
	}
	return &r.call
}

// renewArgs builds the arguments that set the TTL of holds to at least ttl.
func renewArgs(ttl time.Duration, holds ...*hold) []any {
	list := make([]any, 0, 2+2*len(holds))
	for _, h := range holds {
		list = append(list, h.entry.keys.Lock)
	}
	list = append(list, validity.Milliseconds(ttl), holds[0].entry.m.owners)
	for _, h := range holds {
		list = append(list, h.n)
	}
	return renewScript.Args(len(holds), list...)
}

// Replied is called by the executor with the end of the request.
func (r *renewRequest) Replied(_ *command.Call, reply command.Reply) {
	m := r.m
	codes, ok := reply.Value.([]any)
	if reply.Outcome != command.Answered || !ok || len(codes) != len(r.holds) {
		m.stats.renewalFailures.Add(uint64(len(r.holds)))
		m.telemetry.renewed("failed", len(r.holds))
		m.log.Warn("holdfast: renewal failed, trying again", "locks", len(r.holds), "error", reply.Err)
		for _, h := range r.holds {
			m.scheduler.Retry(&h.item)
		}
		return
	}
	renewed := 0
	for i, h := range r.holds {
		switch codes[i] {
		case int64(renewDone):
			if r.ttl < h.cfg.ttl {
				continue // checkNow: it is there, and nothing was prolonged
			}
			renewed++
			if deadline, ok := m.scheduler.Confirm(&h.item, reply.Sent, r.ttl); ok {
				h.entry.renewed(h, deadline)
			}
		case int64(renewGone):
			h.entry.lose(h, LostDeleted)
		case int64(renewStolen):
			h.entry.lose(h, LostStolen)
		default: // renewRefused
			m.stats.renewalFailures.Add(1)
			m.scheduler.Retry(&h.item)
		}
	}
	m.stats.renewals.Add(uint64(renewed))
	m.telemetry.renewed("renewed", renewed)
}

// Overdue does nothing: the scheduler hands the holds out again by itself.
func (r *renewRequest) Overdue(*command.Call) {}

// expire is called by the scheduler when a deadline has passed.
func (m *Manager) expire(h *hold) { h.entry.lose(h, LostDeadline) }

// Extend makes the lease last for at least d from now. It is for fixed leases; one
// that is renewed is prolonged as well, which spares it renewals and nothing else. A
// lease is never shortened.
//
// It returns ErrLeaseLost or ErrMaxHold if the lease has ended, ErrNotHeld after
// Unlock, ErrInvalidOption for a bad d or one beyond WithMaxHold, and ErrUnavailable if Redis did not answer
// within a second or before ctx was done: the lease may then last as long as before
// or as long as asked for, and Deadline says what can be relied on.
func (l *Lease) Extend(ctx context.Context, d time.Duration) error {
	e, h := l.hold.entry, l.hold
	var bad error
	if checkLease(&bad, "Extend", d); bad != nil {
		return bad
	}
	switch ended := l.stillHeld(); {
	case ended != nil:
		return ended
	case !l.limit.IsZero() && time.Until(l.limit) < d:
		return &OptionError{"Extend", d, "beyond the end that WithMaxHold sets"}
	}
	ttl := d + validity.Margin(2*d) // so that d is left of it when the margin is taken off
	sent := time.Now()
	value, err := e.m.ask(ctx, l.name, renewScript, renewArgs(ttl, h))
	if err != nil {
		return err
	}
	codes, ok := value.([]any)
	if !ok || len(codes) != 1 {
		return newLockError(ErrUnavailable, l.name, fmt.Errorf("unexpected reply %v", value))
	}
	switch codes[0] {
	case int64(renewDone):
		deadline, ok := e.m.scheduler.Confirm(&h.item, sent, ttl)
		if ok {
			e.renewed(h, deadline)
		}
	case int64(renewGone):
		e.lose(h, LostDeleted)
	case int64(renewStolen):
		e.lose(h, LostStolen)
	default:
		return newLockError(ErrUnavailable, l.name, fmt.Errorf("redis refused to prolong it"))
	}
	return l.stillHeld()
}

// stillHeld reports why the lease is not, nil if it is.
func (l *Lease) stillHeld() error {
	switch err := l.Err(); {
	case err == ErrReleased:
		return newLockError(ErrNotHeld, l.name)
	default:
		return err
	}
}
