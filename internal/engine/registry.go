package engine

import (
	"maps"
	"slices"

	"github.com/holdfast-go/holdfast/internal/command"
	"github.com/holdfast-go/holdfast/internal/lock"
	"github.com/holdfast-go/holdfast/internal/telemetry"
)

// registry has the entries of a family by name, after the name mapper. A mutex, a fair
// lock and a read-write lock of one name have an entry each: what they do to each other in
// Redis, they would do between processes as well.
type registry map[string]*entry

// entry returns the entry of a lock, a new one if there is none.
func (eng *Engine) entry(n *named) (*entry, *Verdict) {
	eng.mu.Lock()
	e, over := eng.entries[n.family][n.Mapped], eng.closed
	if e == nil && !over {
		e = newEntry(n)
		eng.entries[n.family][n.Mapped] = e
	}
	eng.mu.Unlock()
	if over {
		return nil, lock.Because(Closed)
	}
	n.entry.Store(e)
	eng.Identity.begin()
	return e, nil
}

// existing returns the entry of a lock; nil if there is none.
func (eng *Engine) existing(family Kind, mapped string) *entry {
	eng.mu.Lock()
	defer eng.mu.Unlock()
	return eng.entries[family][mapped]
}

// recallLocked has a forgotten entry, whose mu is held, be that of its lock again, as a caller does who holds a lock and
// comes back for it: an entry takes longer to make than to recall. It reports false if there is another entry by now, or
// Close has been called.
func (eng *Engine) recallLocked(e *entry) bool {
	eng.mu.Lock()
	defer eng.mu.Unlock()
	r := eng.entries[e.lock.Family()]
	if eng.closed || r[e.mapped()] != nil {
		return false
	}
	r[e.mapped()] = e
	e.lock.Recall()
	return true
}

// forget drops a dead entry. A later caller recalls it, or makes a new one.
func (eng *Engine) forget(e *entry) {
	eng.mu.Lock()
	if r := eng.entries[e.lock.Family()]; r[e.mapped()] == e {
		delete(r, e.mapped())
	}
	eng.mu.Unlock()
	eng.recent.keep(e)
}

// snapshot returns the entries of now.
func (eng *Engine) snapshot() []*entry {
	eng.mu.Lock()
	defer eng.mu.Unlock()
	return eng.entriesLocked()
}

func (eng *Engine) entriesLocked() (all []*entry) {
	for _, r := range eng.entries {
		all = slices.AppendSeq(all, maps.Values(r))
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

// Ages adds for how long the oldest leases and waiters have been here.
func (eng *Engine) Ages(g telemetry.Gauges) {
	for _, e := range eng.snapshot() {
		e.ages(g)
	}
}

// clientClosed is called when the client turns out to be closed. No caller can get a lock any more, except by
// re-entry. Holds end with their deadlines.
func (eng *Engine) clientClosed() {
	eng.mu.Lock()
	entries := eng.entriesLocked()
	eng.mu.Unlock()
	for _, e := range entries {
		e.fail(command.ErrClientClosed)
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
