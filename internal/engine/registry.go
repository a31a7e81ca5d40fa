package engine

import (
	"github.com/holdfast-go/holdfast/internal/command"
	"github.com/holdfast-go/holdfast/internal/lock"
	"github.com/holdfast-go/holdfast/internal/telemetry"
	"github.com/holdfast-go/holdfast/internal/wire"
)

// registry has the entries of a family by name, after the name mapper: those in use, and some that were forgotten lately. A mutex,
// a fair lock and a read-write lock of one name have an entry each: what they do to each other in Redis, they would do between
// processes as well.
type registry map[string]*entry

// listing is what the registry knows of an entry.
type listing uint8

const (
	unlisted listing = iota // it does not have the entry, but perhaps another one of the name
	listed                  // the entry is in use
	kept                    // likewise, and it has a place in Engine.recent
	unused                  // the entry has such a place, and has been forgotten
)

// lockEntry returns the lock's entry with its mu locked. If there is none, it is the one that the last caller left, or a new
// one.
func (h *Lock) lockEntry() (*entry, *lock.Verdict) {
	e := h.entry.Load()
	for {
		if e != nil {
			e.mu.Lock()
			if !e.lock.IsOver() || h.engine.recallLocked(e) {
				return e, nil
			}
			e.mu.Unlock() // its successor is in the registry
		}
		var v *lock.Verdict
		if e, v = h.engine.entry(h.named); v != nil {
			return nil, v
		}
	}
}

// entry returns the entry of a lock, which may have been forgotten; a new one if the registry has none.
func (eng *Engine) entry(n *named) (*entry, *lock.Verdict) {
	eng.mu.Lock()
	if eng.closed {
		eng.mu.Unlock()
		return nil, lock.Because(lock.Closed)
	}
	r := eng.entries[n.family]
	e := r[n.Mapped]
	made := e == nil
	if made {
		e = newEntry(n)
		r[n.Mapped], e.listing = e, listed
	}
	eng.mu.Unlock()
	n.entry.Store(e)
	n.keys.CompareAndSwap(nil, e.lock.Keys)
	if made {
		eng.Identity.begin()
	}
	return e, nil
}

// existing returns the entry of a lock that is in use; nil if there is none.
func (eng *Engine) existing(family lock.Kind, mapped string) *entry {
	eng.mu.Lock()
	defer eng.mu.Unlock()
	if e := eng.entries[family][mapped]; e != nil && e.listing != unused {
		return e
	}
	return nil
}

// recallLocked has a forgotten entry, whose mu is held, be that of its lock again, as a caller does who holds a lock and
// comes back for it: an entry takes longer to make than to recall. It reports false if there is another entry by now, or
// Close has been called.
func (eng *Engine) recallLocked(e *entry) bool {
	eng.mu.Lock()
	defer eng.mu.Unlock()
	if eng.closed {
		return false
	}
	if e.listing == unused {
		e.listing = kept
	} else {
		r := eng.entries[e.lock.Family]
		if r[e.mapped()] != nil {
			return false
		}
		r[e.mapped()], e.listing = e, listed
	}
	e.lock.Recall()
	return true
}

// forget is for a dead entry. A later caller recalls it, or makes a new one.
func (eng *Engine) forget(e *entry) {
	eng.mu.Lock()
	defer eng.mu.Unlock()
	switch {
	case e.listing == kept:
		e.listing = unused
	case e.listing != listed:
	case len(e.mapped()) > longestRecent:
		eng.dropLocked(e)
	default:
		e.listing = unused
		switch old := eng.recent.add(e); {
		case old == nil:
		case old.listing == unused:
			eng.dropLocked(old)
		default:
			old.listing = listed
		}
	}
}

// dropLocked takes an entry that is not in use out of the registry.
func (eng *Engine) dropLocked(e *entry) {
	delete(eng.entries[e.lock.Family], e.mapped())
	e.listing = unlisted
}

// snapshot returns the entries that are in use.
func (eng *Engine) snapshot() []*entry {
	eng.mu.Lock()
	defer eng.mu.Unlock()
	return eng.entriesLocked()
}

func (eng *Engine) entriesLocked() (all []*entry) {
	for _, r := range eng.entries {
		for _, e := range r {
			if e.listing != unused {
				all = append(all, e)
			}
		}
	}
	return all
}

// Counts returns how many names are in use, how many callers wait, and how many holds there are.
func (eng *Engine) Counts() (locks, waiting, held int) {
	for _, e := range eng.snapshot() {
		e.mu.Lock()
		locks++
		waiting += e.lock.Waiting()
		held += len(e.lock.Holds())
		e.mu.Unlock()
	}
	return locks, waiting, held
}

// Gauge adds for how long the oldest leases and waiters have been here, and the permits.
func (eng *Engine) Gauge(g telemetry.Gauges) {
	for _, e := range eng.snapshot() {
		e.gauge(g)
	}
}

// clientClosed is called when the client turns out to be closed. No caller can get a lock any more, except by
// re-entry. Holds end with their deadlines.
func (eng *Engine) clientClosed() {
	for _, e := range eng.snapshot() {
		e.do(func(m *lock.Moment) { e.lock.Fail(m, command.ErrClientClosed) })
	}
}

// CheckHolds asks Redis whether what the process holds by a key is still there.
func (eng *Engine) CheckHolds(mapped string) {
	for k := range lock.Families {
		if e := eng.existing(k, mapped); e != nil {
			e.checkNow()
		}
	}
}

// recent are entries of names that were in use lately. The registry keeps them when they are forgotten: programs make a handle for a
// name that comes out of their data, and names come again. To recall an entry costs a tenth less of a pair than to make one, with the
// names of all its keys. An entry that is in use again keeps its place. recent is guarded by Engine.mu.
type recent struct {
	ring []*entry
	next int // the place that is taken next, once all are
}

const (
	mostRecent = 4096
	// longestRecent bounds the memory of an entry that is kept, in bytes of its name.
	longestRecent = 256
)

// add gives an entry a place. It returns the entry that has had the place until now; nil: none.
func (r *recent) add(e *entry) (old *entry) {
	if len(r.ring) < mostRecent {
		r.ring = append(r.ring, e)
		return nil
	}
	old, r.ring[r.next] = r.ring[r.next], e
	r.next = (r.next + 1) % mostRecent
	return old
}

// What makes a kind of lock is in the rules of internal/lock. This is what the names of its locks mean in Redis.

// family is the kind of lock that an entry is of: both sides of a read-write lock are one.
type family struct {
	keys     func(name string) *wire.Keys
	twin     lock.Kind // whose locks have the same key in Redis, and other entries; itself: there is none
	together bool      // one script can take several of them
}

var families = [lock.Families]family{
	lock.MutexKind:     {keys: wire.NewKeys, twin: lock.FairKind, together: true},
	lock.FairKind:      {keys: wire.NewKeys, twin: lock.MutexKind, together: true},
	lock.SemaphoreKind: {keys: wire.NewSemaphoreKeys, twin: lock.SemaphoreKind},
	lock.WriteKind:     {keys: wire.NewRWKeys, twin: lock.WriteKind},
}
