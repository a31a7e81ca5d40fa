package engine

import (
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/internal/lock"
	"github.com/holdfast-go/holdfast/internal/wire"
)

// mostLingering is how many locks of a process linger at a time. The one that has done so for longest goes first.
const mostLingering = 10_000

// A TryLock waits for the answer of a holder that may linger for so many round trips, which have four ways in them and may meet busy
// processes; and at least for so long, because Go reads messages tens of milliseconds late while its goroutines are busy.
const (
	answerTrips = 8
	leastAnswer = 100 * time.Millisecond
)

// lingering are the locks of a process that linger (lock/linger.go), in the order in which they began.
type lingering struct {
	mu             sync.Mutex // guards the following, and running.linger of these entries; a leaf
	oldest, newest *entry
	n              int
}

// lingers is what an entry has for that.
type lingers struct {
	hold         *lock.Hold    // nil: e is not in the list
	since        time.Duration // of the hold that lingers
	older, newer *entry
}

// add puts e behind the others. If there are too many, it takes out the one that has lingered for longest, and returns its hold.
func (l *lingering) add(e *entry, h *lock.Hold, since time.Duration) (oldest *lock.Hold) {
	x := &e.run().linger
	l.mu.Lock()
	defer l.mu.Unlock()
	*x = lingers{hold: h, since: since, older: l.newest}
	if l.newest == nil {
		l.oldest = e
	} else {
		l.newest.runs.linger.newer = e
	}
	l.newest = e
	if l.n++; l.n <= mostLingering {
		return nil
	}
	oldest = l.oldest.runs.linger.hold
	l.unlink(l.oldest) // now: the next event is to find another one
	return oldest
}

// remove takes e out, if add has not done so.
func (l *lingering) remove(e *entry) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if e.runs.linger.hold != nil {
		l.unlink(e)
	}
}

// unlink is remove with mu held.
func (l *lingering) unlink(e *entry) {
	x := &e.runs.linger
	if x.older == nil {
		l.oldest = x.newer
	} else {
		x.older.runs.linger.newer = x.newer
	}
	if x.newer == nil {
		l.newest = x.older
	} else {
		x.newer.runs.linger.older = x.older
	}
	*x = lingers{since: x.since} // it lingers until its event comes
	l.n--
}

// since is when e began to linger, after Settings.Epoch.
func (l *lingering) since(e *entry) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return e.runs.linger.since
}

// dismiss is called when too many locks linger.
func (e *entry) dismiss(h *lock.Hold) {
	m := e.moment()
	e.mu.Lock()
	defer e.unlock(&m)
	e.lock.Dismiss(&m, h)
}

// IsIdle reports whether this process keeps a lock by that owner id, and no caller has it.
func (eng *Engine) IsIdle(mapped, owner string) bool {
	for family := range lock.Families {
		if e := eng.existing(family, mapped); e != nil && e.isIdle(owner) {
			return true
		}
	}
	return false
}

func (e *entry) isIdle(owner string) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	h := e.lock.Lingering()
	return h != nil && wire.OwnerID(e.engine.Process.Owners, h.Number, true, false) == owner
}
