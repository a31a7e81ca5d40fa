package engine

import (
	"maps"
	"slices"
)

// What Close waits for: requests under way, and releases until Redis has answered.

// begin and end count what Close waits for.
func (eng *Engine) begin() {
	eng.mu.Lock()
	eng.pending++
	eng.mu.Unlock()
}

func (eng *Engine) end() {
	eng.mu.Lock()
	eng.pending--
	if eng.closed && eng.pending == 0 && !eng.empty {
		eng.empty = true // an Unlock after Close can begin something again
		close(eng.drained)
	}
	eng.mu.Unlock()
}

// Pending is how many requests and releases are under way.
func (eng *Engine) Pending() int {
	eng.mu.Lock()
	defer eng.mu.Unlock()
	return eng.pending
}

// pausing and resumed record that a release pauses before it is sent again, and does not any more.
func (eng *Engine) pausing(r *repeated) {
	eng.mu.Lock()
	if eng.paused == nil {
		eng.paused = make(map[*repeated]struct{})
	}
	eng.paused[r] = struct{}{}
	eng.mu.Unlock()
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
		m := r.entry.moment()
		r.entry.mu.Lock()
		r.hastenLocked(&m)
		r.entry.unlock(&m)
	}
}

// gaveUp records why a release has ended that Redis has not confirmed.
func (eng *Engine) gaveUp(err error) {
	eng.mu.Lock()
	if eng.closed {
		eng.denied = err
	}
	eng.mu.Unlock()
}

// troubled records why a request of a release has brought no answer.
func (eng *Engine) troubled(cause error) {
	eng.mu.Lock()
	if eng.closed {
		eng.trouble = cause
	}
	eng.mu.Unlock()
}
