package engine

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"

	"github.com/holdfast-go/holdfast/internal/command"
	"github.com/holdfast-go/holdfast/internal/lock"
	"github.com/holdfast-go/holdfast/internal/protocol"
	"github.com/holdfast-go/holdfast/internal/wire"
)

// TakeAll takes all locks, which are together called whole: without waiting and as many as possible at a time. Unless once, if that
// fails it takes them in their order, and begins again if one ends meanwhile.
func TakeAll(ctx context.Context, whole *Lock, locks []*Lock, once bool, trace context.Context) (*Lease, error) {
	lease, err := takeAll(ctx, whole, locks, true, trace)
	again := !once && (errors.Is(err, lock.NotAcquired) || errors.Is(err, lock.Unavailable)) && !errors.Is(err, ctx.Err())
	for again { // even if ctx has ended since: the error names it then
		lease, err = takeAll(ctx, whole, locks, false, trace)
		again = errors.Is(err, errEndedEarly)
	}
	return lease, err
}

// errEndedEarly is why all locks together could not be held although each was granted.
var errEndedEarly = errors.New("one of the locks was lost before all were acquired")

// takeAll takes the locks in order; with once, without waiting and as many as possible
// at a time.
func takeAll(caller context.Context, of *Lock, locks []*Lock, once bool, trace context.Context) (*Lease, error) {
	for _, h := range locks { // before any of them is waited for
		if err := h.waitsForItself(caller); err != nil {
			return nil, err
		}
	}
	ctx := caller
	whole := newGroup(of, len(locks))
	for rest := locks; len(rest) > 0; {
		n := 1
		if once {
			n = together(rest)
		}
		got, err := takeSome(ctx, rest[:n], once, trace)
		for _, p := range got {
			whole.join(p)
			if !once {
				ctx = p.Context(ctx) // the next is not waited for when this one ends
			}
		}
		if err != nil {
			if !once && ctx.Err() != nil && !errors.Is(err, context.Cause(caller)) { // by a lock taken before, and not by what follows
				err = NewError(lock.Unavailable, of.Name, errEndedEarly, context.Cause(ctx))
			}
			whole.dissolve()
			return nil, err
		}
		rest = rest[n:]
	}
	if !whole.valid() {
		err := NewError(lock.Unavailable, of.Name, errEndedEarly, whole.lease.Err())
		whole.dissolve()
		return nil, err
	}
	return whole.lease, nil
}

// together returns how many of the first locks one script can take.
func together(locks []*Lock) int {
	n := 0
	for n < len(locks) && locks[n].takesWith(locks[0]) {
		n++
	}
	return max(1, n)
}

// takeSome takes several locks of one engine, in the order of their names, without
// waiting, or a single one. It returns what it has got, even with an error.
func takeSome(ctx context.Context, locks []*Lock, once bool, trace context.Context) (got []*Lease, _ error) {
	if len(locks) > 1 {
		if got, apart, err := takeTogether(ctx, locks, trace); !apart {
			return got, err
		}
	}
	for _, h := range locks {
		lease, err := h.take(ctx, once, part)
		if err != nil {
			return got, err
		}
		got = append(got, lease)
	}
	return got, nil
}

// Locks of a Multi that are free are taken together, by one script.

// takesWith reports whether one script can take the lock together with first.
func (h *Lock) takesWith(first *Lock) bool {
	return families[h.family].together && !h.Terms.Fencing && h.engine == first.engine &&
		(!h.engine.cluster && !h.engine.oneSlot.Load() || wire.Slot(h.Mapped) == wire.Slot(first.Mapped))
}

// takeTogether takes several locks of one engine, in the order of their names, without waiting. It returns the
// leases that it has got, even with an error. It returns apart, and no lease, if one of the locks is in use in
// this process, if they must share a slot and do not, or if a free one has a queue: only a request for that lock
// alone removes the dead from it, and Redisson's waiters that do not come.
func takeTogether(ctx context.Context, locks []*Lock, trace context.Context) (got []*Lease, apart bool, err error) {
	if ctx.Err() != nil {
		return nil, false, locks[0].engine.explain(locks[0].Name, lock.Because(lock.NotAcquired, contextCauses(ctx)...))
	}
	s, err := enterAll(ctx, locks, trace)
	if s == nil || err != nil {
		return nil, err == nil, err
	}
	for i, w := range s.waiters {
		var lease *Lease
		var refused error
		select {
		case <-w.ready:
			lease, refused = locks[i].engine.outcomeOf(w)
		case <-ctx.Done():
			refused = s.entries[i].leave(ctx, w)
		}
		if refused == nil {
			got = append(got, lease)
		} else if err == nil || i == int(s.failed.Load()) { // the others could not be taken because of it
			err = refused
		}
	}
	return got, s.apart.Load() && ctx.Err() == nil, err
}

// sweep is one request for several locks: for each, a waiter that asks once, at the
// head of its entry's queue.
type sweep struct {
	entries []*entry
	waiters []*waiter
	tries   []*lock.Try
	call    command.Call
	apart   atomic.Bool  // refused, but one after the other they may be had
	failed  atomic.Int32 // which of the locks the verdict is about; the first if it is about all
}

// enterAll sends a sweep, which its event does; it returns nil if one of the entries is not idle. It is the
// only place where several entries are locked at a time: in the order of their names.
func enterAll(ctx context.Context, locks []*Lock, trace context.Context) (*sweep, error) {
	s := &sweep{}
	eng, label := locks[0].engine, labelOf(ctx)
	var ev event
	ev.Begin(&eng.world, &eng.Settings)
	defer func() {
		for _, e := range s.entries {
			e.lock.Step(&ev.Moment) // one that was made for nothing is forgotten
		}
		eng.end(&ev, s.entries...)
	}()
	for _, h := range locks {
		e, v := h.lockEntry()
		if v != nil {
			return nil, h.engine.explain(h.Name, v)
		}
		s.entries = append(s.entries, e)
		if !e.lock.IsIdle() {
			return nil, nil
		}
	}
	for i, h := range locks {
		e := s.entries[i]
		w := h.newWaiter(e, nil)
		w.label = label
		t := e.lock.EnterWith(&ev.Moment, &w.Waiter)
		s.waiters, s.tries = append(s.waiters, w), append(s.tries, t)
	}
	script, args := eng.Process.AcquireTogether(s.tries)
	s.call = command.Call{
		Script:   script,
		Args:     args,
		Handler:  s,
		Patience: s.tries[0].Patience,
		Dial:     min(command.FirstAtMost, locks[0].Terms.TTL/2),
		Acks:     locks[0].Terms.Acks,
		Trace:    trace,
	}
	ev.call = &s.call
	return s, nil
}

// Replied is called by the executor: the reply is a verdict for each.
func (s *sweep) Replied(_ *command.Call, r command.Reply) {
	if crossesSlots(r.Err) {
		s.entries[0].engine.oneSlot.Store(true)
		s.apart.Store(true)
	}
	if about, waited, ok := protocol.ParseRefusal(r.Value, new(lock.Reply)); ok {
		s.failed.Store(int32(about) - 1)
		s.apart.Store(waited)
	}
	for _, t := range s.tries {
		p := events.Get().(*pooled)
		p.said = protocol.ReadTogether(r)
		entryOf(t.Hold.Lock).replied(p, t, &lock.Copy{})
	}
}

// crossesSlots reports whether a script was refused for keys of several slots: by a node
// of a cluster that a plain client is connected to, or a proxy in front of one, in words of its own.
func crossesSlots(err error) bool {
	if err == nil {
		return false
	}
	text := strings.ToLower(err.Error())
	return strings.Contains(text, "crossslot") || strings.Contains(text, "same slot")
}

// Overdue is called by the executor when the reply takes too long.
func (s *sweep) Overdue(*command.Call) {
	for _, t := range s.tries {
		entryOf(t.Hold.Lock).do(func(m *lock.Moment) { t.Overdue(m, &lock.Copy{}) })
	}
}

// Stranded is called by the executor when the connection is dead: each lock gets a request of its own.
func (s *sweep) Stranded(*command.Call) {
	for _, t := range s.tries {
		entryOf(t.Hold.Lock).do(func(m *lock.Moment) { t.Stranded(m, &lock.Copy{}) })
	}
}
