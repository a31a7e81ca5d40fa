package engine

import (
	"context"
	"time"

	"github.com/holdfast-go/holdfast/internal/command"
	"github.com/holdfast-go/holdfast/internal/lock"
	"github.com/holdfast-go/holdfast/internal/protocol"
	"github.com/holdfast-go/holdfast/internal/validity"
	"github.com/holdfast-go/holdfast/internal/wire"
)

// ticketKinds are the letters for kinds in tickets, and what kind of lock they are sides of.
var ticketKinds = [...]struct {
	letter byte
	family lock.Kind
}{
	lock.MutexKind:     {'m', lock.MutexKind},
	lock.FairKind:      {'f', lock.FairKind},
	lock.SemaphoreKind: {'s', lock.SemaphoreKind},
	lock.WriteKind:     {'w', lock.WriteKind},
	lock.ReadKind:      {'r', lock.WriteKind},
}

// KindOf is the kind of lock that a ticket is for, and which side of one; false: this version does not know it.
func KindOf(t *wire.Ticket) (family, side lock.Kind, known bool) {
	for k, its := range ticketKinds {
		if t.Kind != 0 && its.letter == t.Kind && (its.family == lock.SemaphoreKind) == (t.Permits > 0) {
			return its.family, lock.Kind(k), true
		}
	}
	return 0, 0, false
}

// Detach ends a lease of one lock, and leaves the lock to the ticket for d. If there is an error, a ticket says that it may work.
func (l *Lease) Detach(ctx context.Context, d time.Duration) (*wire.Ticket, error) {
	e := l.entry()
	_, op := l.observe(ctx, e, !part)
	t, err := l.detach(e, d, op.Trace())
	unlocked(op, err)
	return t, err
}

func (l *Lease) detach(e *entry, d time.Duration, trace context.Context) (*wire.Ticket, error) {
	told := e.engine.newReady()
	var ev event
	ev.Begin(&e.engine.world, &e.engine.Settings)
	e.mu.Lock()
	t := wire.NewTicket(wire.Ticket{
		Kind: ticketKinds[l.in().Hold().Kind].letter, Giver: e.engine.Process.Owners, Key: e.mapped(), Name: l.Name(), Token: l.Token(), For: d, Permits: l.Permits(),
	})
	r, why := e.lock.Detach(&ev.Moment, l.in(), d, t.Number(), trace)
	if r != nil {
		r.Await(told)
	}
	e.engine.end(&ev, e)
	if r != nil {
		e.engine.Stats.Released.Add(1)
		why = <-told
	}
	e.engine.ready.Put(told)
	if r == nil || why.Is(lock.LeaseLost) {
		t = nil
	}
	return t, l.explain(why)
}

// Attach takes over the lock, which a ticket is for. h has the name and kind that the ticket says.
func (h *Lock) Attach(ctx context.Context, t *wire.Ticket) (*Lease, error) {
	_, op := h.Observe(ctx)
	lease, err := h.attach(ctx, t, op.Trace())
	Observed(op, lease, err)
	return lease, err
}

func (h *Lock) attach(ctx context.Context, t *wire.Ticket, trace context.Context) (*Lease, error) {
	eng := h.engine
	if ctx.Err() != nil {
		return nil, eng.explain(h.Name, lock.Because(lock.Unavailable, contextCauses(ctx)...))
	}
	e, v := h.lockEntry()
	if v != nil {
		return nil, eng.explain(h.Name, v)
	}
	var ev event
	ev.Begin(&eng.world, &eng.Settings)
	hold := e.lock.Attaching(&ev.Moment, &h.Terms.Terms, h.Kind)
	eng.end(&ev, e)
	eng.report(lock.CloseReport{More: 1}) // Close waits, so that the lock can go back
	defer eng.report(lock.CloseReport{More: -1})

	script, args := eng.Process.Attach(hold, t)
	sent := time.Now()
	r, strays, err := eng.ask(ctx, h.Name, Repeatable, command.Call{Script: script, Args: args, Acks: h.Terms.Acks, Trace: trace})
	back := &lock.Stay{Owners: t.Giver, Number: t.Number(), Rest: t.For} // what is left of that is not known without an answer
	left, _ := r.Value.(int64)
	switch {
	case err != nil:
	case left < 0:
		if !strays {
			back = nil
		}
		reason := lock.LostDeleted
		if left == protocol.ReleaseStolen {
			reason = lock.LostStolen
		}
		err = eng.explain(h.Name, &lock.Verdict{Fact: lock.LeaseLost, Reason: reason})
	case left > 0:
		back.Rest = max(0, validity.Duration(left)-time.Since(sent))
	}
	if err == nil && r.Unacked != nil {
		err = eng.explain(h.Name, lock.Because(lock.Unavailable, r.Unacked))
	}
	var lease *lock.Lease
	e.do(func(m *lock.Moment) {
		by := h.by()
		if err == nil {
			if lease, v = e.lock.Attached(m, hold, &by, sent, t.Token); v == nil {
				return
			}
			err = eng.explain(h.Name, v)
		}
		e.lock.NotAttached(m, hold, back, strays)
	})
	if lease != nil {
		h.Class.granted(lease.Kind(), lease.Mode())
	}
	return (*Lease)(lease), err
}
