package journal

import (
	"log/slog"
	"time"
)

const (
	// failingFor is how long renewals without an answer have to fail before that is told: a second is what an outage
	// takes to be found out, and then that is told instead.
	failingFor = time.Second
	// failingUntil is for how long no renewal may fail for that to be over. One that failed is tried again within
	// a second (renewal.Retry), which may take another one.
	failingUntil = 5 * time.Second
)

// failing is what the journal knows of renewals that fail. In an outage all do, again and again, and in a cluster one
// by one. It is guarded by journal.mu.
type failing struct {
	since, last time.Time   // the first and the latest failure
	told        bool        // that they fail
	timer       *time.Timer // until the end; nil: none fails
}

func (f *failing) stop() {
	if f.timer != nil {
		f.timer.Stop()
	}
	*f = failing{}
}

// RenewalFailed is called when n holds have not been renewed. An outage has a line of its own. RenewalFailed is for
// renewals that fail while other requests are answered, and is called at once if Redis refuses.
func (j *Journal) RenewalFailed(n int, cause error, refused, outage bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.closed {
		return
	}
	f, now := &j.failing, time.Now()
	f.last = now
	if f.timer == nil {
		f.since, f.timer = now, time.AfterFunc(failingUntil, j.renewalsDone)
	} else {
		f.timer.Reset(failingUntil)
	}
	if f.told || outage || !refused && now.Sub(f.since) < failingFor {
		return
	}
	f.told = true
	j.sayLocked(line{slog.LevelWarn, "holdfast: renewal failed, trying again", []any{"locks", n, "error", cause}, false})
}

// renewalsDone is called by the timer.
func (j *Journal) renewalsDone() {
	j.mu.Lock()
	defer j.mu.Unlock()
	f := &j.failing
	if f.timer == nil || time.Since(f.last) < failingUntil {
		return // stopped, or set again, as it was firing
	}
	if f.told {
		j.sayLocked(line{slog.LevelInfo, "holdfast: no renewal fails any more", []any{"lasted", f.last.Sub(f.since)}, true})
	}
	f.stop()
}
