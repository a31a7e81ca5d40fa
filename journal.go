package holdfast

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

// journal writes what can happen to many locks at a time, and what concerns all of them. No lock may be
// held by its callers: a handler of the logger is code of the user.
type journal struct {
	log *slog.Logger

	mu      sync.Mutex // guards the following
	bursts  map[burstKey]*burst
	outages []time.Time // when those of the last minute were told
	silent  bool        // the outage of now is not told
	untold  int         // outages since one was told
	writing sync.WaitGroup
}

const (
	// burstLines is how many lines of one sort are written one by one in a second; the rest is one line.
	// A search for a lock's name finds its line, unless the process loses thousands of locks at once.
	burstLines = 1000
	// burstNames bounds the names in that line.
	burstNames = 100
	// outageLines is how many outages are told in a minute.
	outageLines = 5
)

// burstKey is what lines of one sort have in common.
type burstKey struct {
	what   string // the message, and that of the line for the rest
	reason string
}

// burst is a second in which lines of one sort are written.
type burst struct {
	lines int      // written
	count int      // of those that are kept for one line
	names []string // their locks, burstNames at most
	timer *time.Timer
}

func newJournal(log *slog.Logger) *journal {
	return &journal{log: log, bursts: make(map[burstKey]*burst)}
}

// one writes a line about a lock, or keeps it for the line that sums up the second. more says what is
// to be written besides, if it is a line of its own.
func (j *journal) one(k burstKey, lock string, more ...any) {
	if !j.log.Enabled(context.Background(), slog.LevelWarn) {
		return
	}
	j.mu.Lock()
	b := j.bursts[k]
	if b == nil {
		b = &burst{}
		j.bursts[k] = b
		b.timer = time.AfterFunc(time.Second, func() { j.sumUp(k, b) })
	}
	alone := b.lines < burstLines
	if alone {
		b.lines++
	} else {
		b.count++
		if len(b.names) < burstNames {
			b.names = append(b.names, lock)
		}
	}
	j.mu.Unlock()
	if alone {
		j.log.Warn(k.what, append([]any{"lock", lock}, more...)...)
	}
}

// sumUp ends a burst with a line for what was kept.
func (j *journal) sumUp(k burstKey, b *burst) {
	j.mu.Lock()
	if j.bursts[k] != b {
		j.mu.Unlock()
		return
	}
	delete(j.bursts, k)
	b.timer.Stop()
	j.writing.Add(1)
	j.mu.Unlock()
	defer j.writing.Done()
	if b.count > 0 {
		j.log.Warn(k.what+", and others", "count", b.count, "locks", b.names, "reason", k.reason)
	}
}

// close writes what is kept, and waits for that until ctx is done.
func (j *journal) close(ctx context.Context) error {
	done := make(chan struct{})
	go func() { // ends with the handlers, which are code of the user
		defer close(done)
		j.mu.Lock()
		rest := make(map[burstKey]*burst, len(j.bursts))
		for k, b := range j.bursts {
			rest[k] = b
		}
		j.mu.Unlock()
		for k, b := range rest {
			j.sumUp(k, b)
		}
		j.writing.Wait()
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// lost writes that a lease was lost.
func (j *journal) lost(lock string, reason LostReason) {
	j.one(burstKey{"holdfast: lease lost", string(reason)}, lock, "reason", string(reason))
}

// gaveUp writes that a release was given up which Redis has not confirmed.
func (j *journal) gaveUp(lock string, cause error) {
	j.one(burstKey{"holdfast: release given up", "not confirmed"}, lock, "error", cause)
}

// unavailable writes that requests bring no answer any more; not if that happens all the time.
func (m *Manager) unavailable(cause error) {
	m.stats.outages.Add(1)
	j, now := m.journal, time.Now()
	j.mu.Lock()
	for len(j.outages) > 0 && now.Sub(j.outages[0]) > time.Minute {
		j.outages = j.outages[1:]
	}
	untold := j.untold
	if j.silent = len(j.outages) >= outageLines; j.silent {
		j.untold++
	} else {
		j.outages, j.untold = append(j.outages, now), 0
	}
	silent := j.silent
	j.mu.Unlock()
	if !silent {
		j.log.Warn("holdfast: redis does not answer", "error", cause, "untold_before", untold)
	}
}

// availableAgain writes that requests are answered again.
func (m *Manager) availableAgain(lasted time.Duration) {
	j := m.journal
	j.mu.Lock()
	silent := j.silent
	j.mu.Unlock()
	if !silent {
		j.log.Info("holdfast: redis answers again", "lasted", lasted)
	}
}
