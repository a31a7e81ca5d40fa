package journal

import (
	"log/slog"
	"time"
)

const (
	// spellLines is how many spells of one sort are told in a minute.
	spellLines = 5
	// failingFor is how long renewals without an answer have to fail before that is told: a second is what an outage
	// takes to be found out, and then that is told instead.
	failingFor = time.Second
	// failingUntil is for how long no renewal may fail for that to be over. One that failed is tried again within
	// a second (validity.RetryAfter), which may take another one.
	failingUntil = 5 * time.Second
)

// spell is the log's view of what begins, lasts and ends, again and again: its beginning and its end have a line, but not
// if it begins all the time.
type spell struct {
	told       []time.Time // when those of the last minute began that were told
	telling    bool        // the beginning of the present one was told
	suppressed int         // since one was told
}

// begin reports whether the beginning is to be told, and of how many nothing was told before.
func (s *spell) begin(now time.Time) (tell bool, suppressed int) {
	for len(s.told) > 0 && now.Sub(s.told[0]) > time.Minute {
		s.told = s.told[1:]
	}
	if s.telling = len(s.told) < spellLines; !s.telling {
		s.suppressed++
		return false, 0
	}
	suppressed, s.suppressed = s.suppressed, 0
	s.told = append(s.told, now)
	return true, suppressed
}

// withSuppressed adds to what a line says of how many beginnings before it nothing was told, if there were any.
func withSuppressed(suppressed int, args ...any) []any {
	if suppressed == 0 {
		return args
	}
	return append(args, "suppressed", suppressed)
}

// end reports whether the end is to be told: the beginning was, and the end was not.
func (s *spell) end() (tell bool) {
	tell, s.telling = s.telling, false
	return tell
}

// failing is what the journal knows of renewals that fail. In an outage all do, again and again, and in a cluster one
// by one. It is guarded by journal.mu.
type failing struct {
	spell
	since, last time.Time   // the first and the latest failure
	known       bool        // since the spell is to be told, or counted
	timer       *time.Timer // until the end; nil: none fails
}

func (f *failing) stop() {
	if f.timer != nil {
		f.timer.Stop()
		f.timer = nil
	}
	f.known = false
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
	if f.known || outage || !refused && now.Sub(f.since) < failingFor {
		return
	}
	f.known = true
	if tell, suppressed := f.begin(now); tell {
		j.sayLocked(line{slog.LevelWarn, "holdfast: renewal failed, trying again", withSuppressed(suppressed, "locks", n, "error", cause), false})
	}
}

// renewalsDone is called by the timer.
func (j *Journal) renewalsDone() {
	j.mu.Lock()
	defer j.mu.Unlock()
	f := &j.failing
	if f.timer == nil || time.Since(f.last) < failingUntil {
		return // stopped, or set again, as it was firing
	}
	f.stop()
	if f.end() {
		j.sayLocked(line{slog.LevelInfo, "holdfast: no renewal fails any more", []any{"lasted", f.last.Sub(f.since)}, true})
	}
}
