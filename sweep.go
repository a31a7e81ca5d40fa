package holdfast

import (
	"context"
	"strings"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/internal/command"
	"github.com/holdfast-go/holdfast/internal/protocol"
	"github.com/holdfast-go/holdfast/internal/wire"
)

// Locks of a Multi that are free are taken together, by one script.

// together returns how many of the first locks one script can take.
func together(locks []*handle) int {
	first, n := locks[0], 0
	for _, h := range locks {
		if h.err != nil || h.kind.rw() || h.cfg.fencing || h.m != first.m ||
			(h.m.cluster || h.m.oneSlot.Load()) && wire.Slot(h.mapped) != wire.Slot(first.mapped) {
			break
		}
		n++
	}
	return max(1, n)
}

// takeAll takes several locks of one manager, in the order of their names, without
// waiting, or a single one. It returns what it has got, also with an error.
func takeAll(ctx context.Context, locks []*handle, once bool, trace context.Context) ([]*Lease, error) {
	if len(locks) == 1 {
		lease, err := locks[0].acquirePart(ctx, once)
		if err != nil {
			return nil, err
		}
		return []*Lease{lease}, nil
	}
	if ctx.Err() != nil {
		return nil, locks[0].m.explain(locks[0].name, because(notAcquired, contextCauses(ctx)...))
	}
	s, err := enterAll(ctx, locks, trace)
	if err != nil {
		return nil, err
	}
	if s == nil {
		return takeEach(ctx, locks)
	}
	var got []*Lease
	for i, w := range s.waiters {
		var refused error
		select {
		case <-w.Ready():
			s.entries[i].m.ready.Put(w.Ready())
			refused = locks[i].m.explain(locks[i].name, w.Outcome().verdict)
		case <-ctx.Done():
			refused = s.entries[i].leave(ctx, w)
		}
		if refused == nil {
			got = append(got, w.Outcome().lease)
		} else if err == nil || i == int(s.failed.Load()) { // the others could not be taken because of it
			err = refused
		}
	}
	if s.apart.Load() && ctx.Err() == nil {
		return takeEach(ctx, locks)
	}
	return got, err
}

// takeEach is takeAll where one of the locks is in use in this process, or not all share
// a slot that have to, or a free one has a queue: the dead in it, and Redisson's who do not come, are
// seen to by who asks for that lock alone.
func takeEach(ctx context.Context, locks []*handle) (got []*Lease, _ error) {
	for _, h := range locks {
		lease, err := h.acquirePart(ctx, true)
		if err != nil {
			return got, err
		}
		got = append(got, lease)
	}
	return got, nil
}

// sweep is one request for several locks: for each, a waiter that asks once, at the
// head of its entry's queue.
type sweep struct {
	entries []*entry
	waiters []*waiter
	tries   []*try
	call    command.Call
	apart   atomic.Bool  // refused, but one after the other they may be had
	failed  atomic.Int32 // which of the locks the verdict is about; the first if it is about all
}

// enterAll sends a sweep; it returns nil if one of the entries is not idle. It is the
// only place where several entries are locked at a time: in the order of their names.
func enterAll(ctx context.Context, locks []*handle, trace context.Context) (*sweep, error) {
	s := &sweep{}
	m, label := locks[0].m, labelOf(ctx)
	defer func() {
		for _, e := range s.entries {
			e.stepLocked() // one that was made for nothing is forgotten
			e.mu.Unlock()
		}
	}()
	for _, h := range locks {
		e, v := h.lockEntry()
		if v != nil {
			return nil, h.m.explain(h.name, v)
		}
		s.entries = append(s.entries, e)
		if e.closed || e.waiters.Len() > 0 || e.hold != nil || e.releasing+e.orphans > 0 {
			return nil, nil
		}
	}
	args := []any{m.owners}
	var keys []any
	for i, h := range locks {
		e := s.entries[i]
		w := &waiter{Value: request{h: h, once: true, after: e.tries, came: time.Since(m.epoch), label: label}}
		e.waiters.Push(w, m.newReady())
		e.onces++
		t := e.newTryLocked(w)
		t.call.Script, t.call.Patience = protocol.MultiAcquire, h.cfg.patience(m.executor, true)
		k := t.hold.keys
		keys = append(keys, k.Lock, k.Queue, k.Deadlines, k.Tombstones)
		args = append(args, t.hold.tail(h.kind), h.cfg.ms)
		s.waiters, s.tries = append(s.waiters, w), append(s.tries, t)
	}
	s.call = command.Call{
		Script:   protocol.MultiAcquire,
		Args:     protocol.MultiAcquire.Args(len(keys), append(keys, args...)...),
		Handler:  s,
		Patience: locks[0].cfg.patience(m.executor, true),
		Acks:     m.lock.acks,
		Trace:    trace,
	}
	if !m.executor.Submit(&s.call) {
		for _, t := range s.tries {
			t.neverSentLocked()
		}
		for i, e := range s.entries {
			e.deliverLocked(s.waiters[i], outcome{verdict: because(closed)})
		}
	}
	return s, nil
}

// Replied is called by the executor: the reply is a verdict for each.
func (s *sweep) Replied(_ *command.Call, r command.Reply) {
	if crossesSlots(r.Err) {
		s.entries[0].m.oneSlot.Store(true)
		s.apart.Store(true)
	}
	if refused, ok := protocol.ParseRefusal(r.Value); ok {
		s.failed.Store(int32(refused.Lock) - 1)
		s.apart.Store(refused.Waited)
	}
	for _, t := range s.tries {
		t.Replied(nil, r)
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
		t.Overdue(nil)
	}
}

// Stranded is called by the executor when the connection is dead: each lock is asked for by itself.
func (s *sweep) Stranded(*command.Call) {
	for _, t := range s.tries {
		t.Stranded(nil)
	}
}
