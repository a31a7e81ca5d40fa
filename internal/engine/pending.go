package engine

import (
	"maps"
	"slices"
)

// What Close waits for: requests under way, and releases until Redis has answered.

// report records what an event says to Close.
func (eng *Engine) report(r closeReport) {
	eng.mu.Lock()
	defer eng.mu.Unlock()
	eng.pending += r.more
	if !eng.closed {
		return
	}
	if r.trouble != nil {
		eng.trouble = r.trouble
	}
	if r.denied != nil {
		eng.denied = r.denied
	}
	if eng.pending == 0 && !eng.empty {
		eng.empty = true // an Unlock after Close can begin something again
		close(eng.drained)
	}
}

// Pending is how many requests and releases are under way.
func (eng *Engine) Pending() int {
	eng.mu.Lock()
	defer eng.mu.Unlock()
	return eng.pending
}

// pausing and resumed record that a release pauses before it is sent again, and does not any more. pausing reports whether
// Close has been called.
func (eng *Engine) pausing(r *repeated) (closing bool) {
	eng.mu.Lock()
	defer eng.mu.Unlock()
	if eng.paused == nil {
		eng.paused = make(map[*repeated]struct{})
	}
	eng.paused[r] = struct{}{}
	return eng.closed
}

func (eng *Engine) resumed(r *repeated) {
	eng.mu.Lock()
	delete(eng.paused, r)
	eng.mu.Unlock()
}

// closing reports whether Close has been called.
func (eng *Engine) closing() bool {
	eng.mu.Lock()
	defer eng.mu.Unlock()
	return eng.closed
}

// hasten has the releases that pause sent at once: Close waits for them.
func (eng *Engine) hasten() {
	eng.mu.Lock()
	paused := slices.Collect(maps.Keys(eng.paused))
	eng.mu.Unlock()
	for _, r := range paused {
		r.resend()
	}
}
