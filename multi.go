package holdfast

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/holdfast-go/holdfast/internal/command"
	"github.com/holdfast-go/holdfast/internal/wire"
)

// Multi is several locks taken as one, all or none. They may be of any kind, and of one
// or several managers. It shares nothing with Redisson's MultiLock but the locks
// themselves.
//
// The locks are taken in one order everywhere, that of their names, so that two Multis
// never deadlock. Locks of the same name on different servers are taken in the order in
// which NewMulti was given them, so that must be the same everywhere. A caller that holds
// a lock and takes another one by itself is outside that order, and can deadlock.
//
// If they are all free, mutexes and fair locks of one manager are taken by one script, in
// one round trip (in a cluster, those that share a slot). Otherwise, and with WithFencing
// and for read-write locks, they are taken one after the other, while those before are
// held.
type Multi struct {
	locks []*handle
	whole handle // for names and telemetry: the locks together
}

// NewMulti returns the lock of all locks. A lock is a *Mutex, *FairMutex or *RWMutex, what
// RWMutex.RLocker returns, or another *Multi, whose locks it stands for. It returns
// ErrInvalidOption if there is none, for anything else, and for a lock that is named
// twice; a bad name or option of a lock is reported by the first call.
func NewMulti(locks ...Locker) (*Multi, error) {
	all, err := handlesOf("NewMulti", locks)
	if err != nil {
		return nil, err
	}
	seen := make(map[lockID]bool)
	for _, h := range all {
		if h.err != nil {
			continue
		}
		id := lockID{h.m, h.mapped}
		if seen[id] {
			return nil, &OptionError{"NewMulti", h.name, "named twice: it would wait for itself"}
		}
		seen[id] = true
	}
	slices.SortStableFunc(all, func(a, b *handle) int { return cmp.Compare(a.order(), b.order()) })
	return &Multi{all, wholeOf(multiKind, strings.Join(namesOf(all), "+"), all)}, nil
}

// wholeOf describes locks that are taken together. Its error is the first of theirs.
func wholeOf(k kind, name string, locks []*handle) handle {
	whole := handle{&named{m: locks[0].m, family: k, name: name, cfg: locks[0].cfg}, k}
	for _, h := range locks {
		if whole.err == nil {
			whole.err = h.err
		}
	}
	return whole
}

func namesOf(locks []*handle) []string {
	names := make([]string, len(locks))
	for i, h := range locks {
		names[i] = h.name
	}
	return names
}

// lockID is a lock, of whatever kind.
type lockID struct {
	m    *Manager
	name string // after the name mapper
}

// order is what locks are sorted by.
func (h *handle) order() string {
	if h.err != nil {
		return h.name
	}
	return h.mapped
}

// handlesOf unpacks locks.
func handlesOf(caller string, locks []Locker) ([]*handle, error) {
	if len(locks) == 0 {
		return nil, &OptionError{caller, "", "no lock"}
	}
	var all []*handle
	for _, l := range locks {
		var h *handle
		switch l := l.(type) {
		case *Mutex:
			if l != nil {
				h = &l.handle
			}
		case *FairMutex:
			if l != nil {
				h = &l.handle
			}
		case *RWMutex:
			if l != nil {
				h = &l.handle
			}
		case readSide:
			h = &l.l.read
		case *Multi:
			if l != nil && caller == "NewMulti" {
				all = append(all, l.locks...)
				continue
			}
		}
		if h == nil {
			return nil, &OptionError{caller, fmt.Sprintf("%T", l), "not a lock that it can take"}
		}
		all = append(all, h)
	}
	return all, nil
}

// Lock takes all locks. It waits for each in turn and meanwhile holds those before it;
// ctx bounds the whole wait. If one of those ends, it begins again. On error none is held,
// and those that were taken are being released; the error is that of the lock that could
// not be taken, see Mutex.Lock.
//
// The lease ends with the first of the locks that is lost, and the others are then
// released. Its Deadline is the earliest of theirs; Extend prolongs all.
func (l *Multi) Lock(ctx context.Context) (*Lease, error) {
	span := l.whole.m.telemetry.acquire(ctx, &l.whole)
	lease, err := l.acquire(span, ctx, true)
	again := (errors.Is(err, ErrNotAcquired) || errors.Is(err, ErrUnavailable)) && !errors.Is(err, ctx.Err())
	for again { // also if ctx has ended since: the error names it then
		lease, err = l.acquire(span, ctx, false)
		again = errors.Is(err, errEndedEarly)
	}
	span.end(lease, err)
	return lease, err
}

// TryLock takes all locks without waiting. It returns ErrNotAcquired if one of them is
// held by another owner. Otherwise it is like Lock.
func (l *Multi) TryLock(ctx context.Context) (*Lease, error) {
	span := l.whole.m.telemetry.acquire(ctx, &l.whole)
	lease, err := l.acquire(span, ctx, true)
	span.end(lease, err)
	return lease, err
}

// errEndedEarly is why all locks together could not be held although each was granted.
var errEndedEarly = errors.New("one ended before all were taken")

// acquire takes the locks in order; with once, without waiting and as many as possible
// at a time.
func (l *Multi) acquire(span acquireOp, caller context.Context, once bool) (*Lease, error) {
	if l.whole.err != nil {
		return nil, l.whole.err
	}
	o := ownerFrom(caller)
	if o == nil {
		o = new(owner)
	}
	ctx := withOwner(span.ctx, o)
	whole := newGroupLease(&l.whole, len(l.locks), o)
	for rest := l.locks; len(rest) > 0; {
		n := 1
		if once {
			n = together(rest)
		}
		got, err := takeAll(ctx, rest[:n], once, span.trace())
		for _, p := range got {
			whole.join(p)
			if !once {
				ctx = p.Context(ctx) // the next is not waited for when this one ends
			}
		}
		if err != nil {
			whole.dissolve()
			if ctx.Err() != nil && caller.Err() == nil {
				err = newLockError(ErrUnavailable, l.whole.name, errEndedEarly, context.Cause(ctx))
			}
			return nil, err
		}
		rest = rest[n:]
	}
	if !whole.Valid() {
		err := newLockError(ErrUnavailable, l.whole.name, errEndedEarly, whole.Err())
		whole.dissolve()
		return nil, err
	}
	return whole, nil
}

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
		lease, err := locks[0].acquire(ctx, once)
		if err != nil {
			return nil, err
		}
		return []*Lease{lease}, nil
	}
	s, err := enterAll(ctx, locks, trace)
	if s == nil || err != nil {
		return takeEach(ctx, locks, err)
	}
	var got []*Lease
	for i, w := range s.waiters {
		select {
		case <-w.Ready():
			s.entries[i].m.ready.Put(w.Ready())
			if r := w.Outcome(); r.Err == nil {
				got = append(got, r.Lease)
			} else if err == nil {
				err = r.Err
			}
		case <-ctx.Done():
			if left := s.entries[i].leave(ctx, w); err == nil {
				err = left
			}
		}
	}
	if s.crossed.Load() && ctx.Err() == nil {
		return takeEach(ctx, locks, nil)
	}
	return got, err
}

// takeEach is takeAll where one of the locks is in use in this process, or not all share
// a slot that have to.
func takeEach(ctx context.Context, locks []*handle, err error) (got []*Lease, _ error) {
	for _, h := range locks {
		if err != nil {
			break
		}
		var lease *Lease
		if lease, err = h.acquire(ctx, true); err == nil {
			got = append(got, lease)
		}
	}
	return got, err
}

// sweep is one request for several locks: for each, a waiter that asks once, at the
// head of its entry's queue.
type sweep struct {
	entries []*entry
	waiters []*waiter
	tries   []*try
	call    command.Call
	crossed atomic.Bool // refused because its keys are in several slots
}

// enterAll sends a sweep; it returns nil if one of the entries is not idle. It is the
// only place where several entries are locked at a time: in the order of their names.
func enterAll(ctx context.Context, locks []*handle, trace context.Context) (*sweep, error) {
	s := &sweep{}
	m := locks[0].m
	o := ownerFrom(ctx)
	defer func() {
		for _, e := range s.entries {
			e.stepLocked() // one that was made for nothing is forgotten
			e.mu.Unlock()
		}
	}()
	for _, h := range locks {
		e, err := m.entry(h.named)
		if err != nil {
			return nil, err
		}
		e.mu.Lock()
		s.entries = append(s.entries, e)
		if e.dead || e.closed || e.waiters.Len() > 0 || e.hold != nil || e.releasing+e.orphans > 0 {
			return nil, nil
		}
	}
	args := []any{m.owners}
	var keys []any
	for i, h := range locks {
		e := s.entries[i]
		w := &waiter{Value: request{h: h, owner: o, once: true, after: e.tries}}
		e.waiters.Push(w, m.newReady())
		e.onces++
		t := e.newTryLocked(w)
		t.call.Script, t.call.Patience = multiAcquire, h.cfg.patience()
		k := t.hold.keys
		keys = append(keys, k.Lock, k.Tombstones, k.Queue)
		args = append(args, t.hold.tail(h.kind), h.cfg.ms)
		s.waiters, s.tries = append(s.waiters, w), append(s.tries, t)
	}
	s.call = command.Call{
		Script:   multiAcquire,
		Args:     multiAcquire.Args(len(keys), append(keys, args...)...),
		Handler:  s,
		Patience: locks[0].cfg.patience(),
		Acks:     m.lock.acks,
		Trace:    trace,
	}
	if !m.executor.Submit(&s.call) {
		for _, t := range s.tries {
			t.neverSentLocked()
		}
		for i, e := range s.entries {
			e.deliverLocked(s.waiters[i], Result{Err: newLockError(ErrClosed, locks[i].name)})
		}
	}
	return s, nil
}

// Replied is called by the executor: the reply is a verdict for each.
func (s *sweep) Replied(_ *command.Call, r command.Reply) {
	if crossesSlots(r.Err) {
		s.entries[0].m.oneSlot.Store(true)
		s.crossed.Store(true)
	}
	for _, t := range s.tries {
		t.Replied(nil, r)
	}
}

// crossesSlots reports whether a script was refused for keys of several slots: by a node
// of a cluster that a plain client is connected to, or a proxy in front of one.
func crossesSlots(err error) bool {
	return err != nil && strings.HasPrefix(err.Error(), "CROSSSLOT")
}

// Overdue is called by the executor when the reply takes too long.
func (s *sweep) Overdue(*command.Call) {
	for _, t := range s.tries {
		t.Overdue(nil)
	}
}
