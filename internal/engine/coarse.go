package engine

import (
	"sync/atomic"
	"time"
)

// coarseness is how far a coarse clock may be behind: less than a person sees.
const coarseness = time.Millisecond

// coarseClock is a clock for times that people read. To read a real one took 6 % of a local hand-off. It is behind by
// coarseness at most, and by as long as the process stood still.
type coarseClock struct {
	latest atomic.Int64 // the latest reading, in nanoseconds after Engine.Epoch; 0: it is older than coarseness
}

// coarseNow returns how long after Epoch it is.
func (eng *Engine) coarseNow() time.Duration {
	if at := eng.coarse.latest.Load(); at != 0 {
		return time.Duration(at)
	}
	now := time.Since(eng.Epoch)
	if eng.coarse.latest.CompareAndSwap(0, int64(now)) {
		time.AfterFunc(coarseness, func() { eng.coarse.latest.Store(0) }) // no one waits for it: it ends by itself
	}
	return now
}
