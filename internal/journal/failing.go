package journal

import (
	"log/slog"
	"time"
)

const (
	// failingFor is how long renewals without an answer have to fail, or callers to be refused, before that is told: a second is what an
	// outage takes to be found out, and then that is told instead.
	failingFor = time.Second
	// failingUntil is for how long none may fail for that to be over. One that failed is tried again within
	// a second (renewal.Retry, lock.pauses), which may take another one.
	failingUntil = 5 * time.Second
)

// failing is what the journal knows of renewals that fail, or of callers that are refused. In an outage all fail, again and again, and
// in a cluster one by one. It is guarded by journal.mu.
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

// failedLocked records that something has failed, and reports whether that is to be told now. The line that says over ends what that began.
func (j *Journal) failedLocked(f *failing, over string, refused, outage bool) bool {
	if j.closed {
		return false
	}
	now := time.Now()
	f.last = now
	if f.timer == nil {
		f.since, f.timer = now, time.AfterFunc(failingUntil, func() { j.failsNoMore(f, over) })
	} else {
		f.timer.Reset(failingUntil)
	}
	if f.told || outage || !refused && now.Sub(f.since) < failingFor {
		return false
	}
	f.told = true
	return true
}

// failsNoMore is called by the timer.
func (j *Journal) failsNoMore(f *failing, over string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if f.timer == nil || time.Since(f.last) < failingUntil {
		return // stopped, or set again, as it was firing
	}
	if f.told {
		j.sayLocked(line{slog.LevelInfo, over, []any{"lasted", f.last.Sub(f.since)}, true})
	}
	f.stop()
}

// RenewalFailed is called when n holds have not been renewed. An outage has a line of its own. RenewalFailed is for
// renewals that fail while other requests are answered, and is called at once if Redis refuses.
func (j *Journal) RenewalFailed(n int, cause error, refused, outage bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.failedLocked(&j.renewals, "holdfast: no renewal fails any more", refused, outage) {
		j.sayLocked(line{slog.LevelWarn, "holdfast: renewal failed, trying again", []any{"locks", n, "error", cause}, false})
	}
}

// Refused is called when Redis has refused to grant a lock to callers that wait on. One refusal that passes is not told.
func (j *Journal) Refused(lock string, cause error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.failedLocked(&j.waits, "holdfast: no waiting caller is refused any more", false, false) {
		j.sayLocked(line{slog.LevelWarn, "holdfast: a waiting caller is refused, trying again", []any{"error", cause, "lock", lock}, false})
	}
}
