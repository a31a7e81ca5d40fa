package engine

import (
	"context"
	"strings"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/internal/command"
	"github.com/holdfast-go/holdfast/internal/lock"
	"github.com/holdfast-go/holdfast/internal/protocol"
	"github.com/holdfast-go/holdfast/internal/wire"
)

// A lease of one lock as a part of a lease of several.

// JoinWhole makes l a part of whole. It returns why not if l has ended.
func (l *Lease) JoinWhole(whole *Lease) error {
	l.mu().Lock()
	defer l.mu().Unlock()
	err := l.errLocked()
	if err == nil {
		l.moreLocked().whole = whole
	}
	return err
}

// LeaveWhole takes a lease off the whole that it is part of, and reports whether it is still held.
func (l *Lease) LeaveWhole() bool {
	l.mu().Lock()
	defer l.mu().Unlock()
	if l.in().End() != nil {
		return false
	}
	l.moreLocked().whole = nil
	return true
}

// TookLocked has a lease of several locks say that it came about as the part did that took most.
func (l *Lease) TookLocked(p *Lease) {
	if how, its := l.in().Mode(), p.in().Mode(); its != lock.Reentry && (how == lock.Reentry || its > how) {
		l.in().SetMode(its)
	}
}

// SinceNowLocked has a lease of several locks begin.
func (l *Lease) SinceNowLocked() { l.in().SetSince(time.Since(l.Engine().Epoch)) }

// WaitedLocked has a lease of several locks say that it was waited for.
func (l *Lease) WaitedLocked() { l.in().SetMode(max(l.in().Mode(), lock.AfterWait)) }

// EndsByItself reports whether an option ends the lease: then it is not taken again.
func (l *Lease) EndsByItself() bool {
	l.mu().Lock()
	defer l.mu().Unlock()
	return l.in().EndsByItself()
}

// EndWasSet reports whether a part that has ended has come to the end that WithMaxHold or
// WithFixedLease set. Its holder may not have noticed, so its lock stays in Redis until Unlock or its TTL.
func (l *Lease) EndWasSet() bool {
	l.mu().Lock()
	defer l.mu().Unlock()
	return l.in().EndWasSet(time.Now())
}

// Lapse ends a part with the whole, whose end WithMaxHold has set if limited, else WithFixedLease: as EndWasSet says, if no
// other lease keeps its hold.
func (l *Lease) Lapse(limited bool) {
	e := l.entry()
	over := false
	e.do(func(m *lock.Moment) { over = e.lock.Lapse(m, l.in(), limited) })
	if !over {
		l.GiveBack()
	}
}

// Settle releases what a lease that ended early may still have in Redis.
func (l *Lease) Settle() { _ = l.Unlock(time.Now(), nil) }

// Locks of a Multi that are free are taken together, by one script.

// TakesWith reports whether one script can take the lock together with first.
func (h *Lock) TakesWith(first *Lock) bool {
	return families[h.family].together && !h.Terms.Fencing && h.engine == first.engine &&
		(!h.engine.cluster && !h.engine.oneSlot.Load() || wire.Slot(h.Mapped) == wire.Slot(first.Mapped))
}

// TakeTogether takes several locks of one engine, in the order of their names, without waiting. It returns the
// leases that it has got, even with an error. It returns apart, and no lease, if one of the locks is in use in
// this process, if they must share a slot and do not, or if a free one has a queue: only a request for that lock
// alone removes the dead from it, and Redisson's waiters that do not come.
func TakeTogether(ctx context.Context, locks []*Lock, trace context.Context) (got []*Lease, apart bool, err error) {
	if ctx.Err() != nil {
		return nil, false, locks[0].engine.explain(locks[0].Name, lock.Because(lock.NotAcquired, ContextCauses(ctx)...))
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
			var v *lock.Verdict
			lease, v = locks[i].engine.outcomeOf(w)
			refused = locks[i].engine.explain(locks[i].Name, v)
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
	ev.begin(eng)
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
		eng := entryOf(t.Of()).engine
		p := events.Get().(*pooled)
		p.said = protocol.ReadTogether(t, r)
		eng.replied(p, t, &lock.Copy{})
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
		entryOf(t.Of()).do(func(m *lock.Moment) { t.Overdue(m, &lock.Copy{}) })
	}
}

// Stranded is called by the executor when the connection is dead: each lock gets a request of its own.
func (s *sweep) Stranded(*command.Call) {
	for _, t := range s.tries {
		entryOf(t.Of()).do(func(m *lock.Moment) { t.Stranded(m, &lock.Copy{}) })
	}
}
