package engine

import (
	"maps"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast/internal/lock"
)

// What Close waits for: requests under way, and releases until Redis has answered.

// report records what an event says to Close.
func (eng *Engine) report(r lock.CloseReport) {
	eng.mu.Lock()
	defer eng.mu.Unlock()
	eng.pending += r.More
	if !eng.closed {
		return
	}
	if r.Trouble != nil {
		eng.trouble = r.Trouble
	}
	if d := r.Denied; d != nil {
		eng.denied = eng.explain(nameOf(d.Lock, d.Lease), d.Verdict)
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

// awaitedPause is the longest pause while Close waits for the answer: a few fit into the time that it waits.
const awaitedPause = 50 * time.Millisecond

// pausing has resend called when the pause of a release is over, unless it is already to be called.
func (eng *Engine) pausing(r *lock.Repeated, pause time.Duration, resend func()) {
	eng.mu.Lock()
	defer eng.mu.Unlock()
	if eng.paused[r] != nil {
		return
	}
	if eng.closed {
		pause = min(pause, awaitedPause)
	}
	if eng.paused == nil {
		eng.paused = make(map[*lock.Repeated]*time.Timer)
	}
	eng.paused[r] = time.AfterFunc(pause, resend)
}

// resumed ends the pause of a release, if it has one.
func (eng *Engine) resumed(r *lock.Repeated) {
	eng.mu.Lock()
	defer eng.mu.Unlock()
	if timer := eng.paused[r]; timer != nil {
		timer.Stop()
		delete(eng.paused, r)
	}
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
		entryOf(r.Of()).resend(r)
	}
}
