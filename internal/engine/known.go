package engine

import (
	"time"

	"github.com/holdfast-go/holdfast/internal/command"
	"github.com/holdfast-go/holdfast/internal/retry"
)

// known is what the latest answers of Redis to the requests of an entry have said: nothing yet, that another owner
// has the lock, or no verdict. It decides what a caller learns whose context ends. It is guarded by entry.mu.
type known struct {
	last  *trouble      // nil: nothing since no caller waited, or since a grant; refusal: another owner has the lock
	since time.Duration // the last moment at which Redis answered, or got the first request, after Engine.Epoch; 0: no request since a hold
}

// refusal is the last verdict of Redis if another owner stands in the way.
var refusal = new(trouble)

func (k *known) refused() bool { return k.last == refusal }

// trouble is what requests have met that bring no verdict; nil: the last one brought one.
func (k *known) trouble() *trouble {
	if k.refused() {
		return nil
	}
	return k.last
}

// inTrouble is trouble, which begins with cause if there is none.
func (k *known) inTrouble(cause error) *trouble {
	if k.trouble() == nil {
		k.last = &trouble{cause: cause, pauses: retry.New()}
	}
	return k.last
}

// untroubled is called when a request has brought a verdict.
func (k *known) untroubled() {
	if !k.refused() {
		k.last = nil
	}
}

// asked is called with the time of each request, after Engine.Epoch.
func (k *known) asked(at time.Duration) {
	if k.since == 0 {
		k.since = at
	}
}

// answeredLocked is called with the end of each request.
func (e *entry) answeredLocked(r command.Reply) {
	if r.Outcome == command.Answered {
		e.known.since = max(e.known.since, r.Sent.Sub(e.engine.Epoch)) // Redis was there at some time since
	}
}

// noVerdictLocked is the verdict for w's caller if its context ended, for these causes, before Redis granted the
// lock.
func (e *entry) noVerdictLocked(m *moment, causes []error, w *waiter) *Verdict {
	switch k := &e.known; {
	case e.busyLocked(w):
	case k.trouble() != nil:
		return because(Unavailable, append(causes, k.trouble().cause)...)
	case k.since != 0 && m.age()-k.since >= Silence:
		return because(Unavailable, append(causes, m.silence())...)
	}
	return because(NotAcquired, causes...)
}

// busyLocked reports whether another owner is known to stand in w's way: in this process, or by what Redis said last.
func (e *entry) busyLocked(w *waiter) bool {
	front, k := e.waiters.Front(), &e.known
	switch {
	case e.hold != nil || w.Value.h.Kind != ReadKind && !e.reads.none():
		return true
	case k.trouble() != nil:
		return false
	}
	return k.refused() || e.bidOf(w).standing() || front != nil && e.bidOf(front).standing()
}

// Silence is how long Redis may answer nothing before the error of a caller whose context ends is an outage
// instead of a busy lock.
const Silence = 50 * time.Millisecond
