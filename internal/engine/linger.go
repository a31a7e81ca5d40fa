package engine

import (
	"strings"
	"sync"

	"github.com/holdfast-go/holdfast/internal/lock"
)

// mostLingering is how many locks of a process linger at a time. The one that has done so for longest goes first.
const mostLingering = 10_000

// lingering are the locks of a process that linger (lock/linger.go), in the order in which they began.
type lingering struct {
	mu             sync.Mutex // guards the following, and running.linger of these entries; a leaf
	oldest, newest *entry
	n              int
}

// lingers is what an entry has for that.
type lingers struct {
	hold         *lock.Hold // that lingers; nil: none. It is in the list, unless it was taken out because too many are. Guarded by entry.mu
	listed       bool       // e is in the list
	older, newer *entry
}

// change is called when another hold of e, for which something runs, lingers than before; nil: none. e comes behind the others. If there are too many, it takes
// out the one that has lingered for longest, and returns its hold.
func (l *lingering) change(e *entry, h *lock.Hold) (oldest *lock.Hold) {
	x := &e.runs.linger
	l.mu.Lock()
	defer l.mu.Unlock()
	if x.listed {
		l.unlink(e)
	}
	if x.hold = h; h == nil {
		return nil
	}
	x.listed, x.older = true, l.newest
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

// unlink takes e out of the list.
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
	x.listed, x.older, x.newer = false, nil, nil
	l.n--
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
	return h != nil && strings.TrimSuffix(e.engine.Process.ID(h), ":write") == owner
}
