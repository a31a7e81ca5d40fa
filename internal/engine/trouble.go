package engine

import (
	"time"

	"github.com/holdfast-go/holdfast/internal/command"
	"github.com/holdfast-go/holdfast/internal/retry"
)

// trouble is what is remembered while requests bring no verdict.
type trouble struct {
	cause    error // of the last one
	requests int   // in a row
	pauses   *retry.Pauses
	began    time.Time // the latest pause
	barred   time.Time // when Redis first did not let the client; zero: it did not say so
}

// troubledLocked records a request that brought no verdict.
func (e *entry) troubledLocked(cause error) {
	e.inTroubleLocked().cause = cause
	e.trouble.requests++
	e.refused = false
	e.engine.Stats.Troubles.Add(1)
}

func (e *entry) inTroubleLocked() *trouble {
	if e.trouble == nil {
		e.trouble = &trouble{pauses: retry.New()}
	}
	return e.trouble
}

// Readmission is for how long requests are repeated if Redis has let the client in before and does not any more
// (NOAUTH, WRONGPASS, NOPERM): a password or a list of rights may be about to change. It is the default lease,
// which is how long a holder would ride that out.
const Readmission = 30 * time.Second

// barredForLongLocked is called when Redis does not let the client. It reports whether that has lasted for
// so long that it is final.
func (e *entry) barredForLongLocked() bool {
	t, now := e.inTroubleLocked(), time.Now()
	if t.barred.IsZero() {
		t.barred = now
	}
	return now.Sub(t.barred) >= e.engine.Readmission
}

// pauseLocked asks again after a pause, which grows while the trouble lasts. A request that was sent
// before the pause began has failed together with the one it is for, as those of many fair waiters do.
func (e *entry) pauseLocked(sent time.Time) {
	pauses := retry.New() // no trouble any more: a request ends late, and later ones were answered
	if t := e.trouble; t != nil {
		if e.alarm == alarmPause && sent.Before(t.began) {
			return
		}
		pauses, t.began = t.pauses, time.Now()
	}
	e.armLocked(alarmPause, pauses.NextBackOff())
	e.strayed = true
}

// askedLocked is called with the time of each request.
func (e *entry) askedLocked(at time.Time) {
	if e.silent == 0 {
		e.silent = at.Sub(e.engine.Epoch)
	}
}

// answeredLocked is called with the end of each request.
func (e *entry) answeredLocked(r command.Reply) {
	if r.Outcome == command.Answered {
		e.silent = max(e.silent, r.Sent.Sub(e.engine.Epoch)) // Redis was there at some time since
	}
}

// noVerdictLocked is the verdict for w's caller if its context ended, for these causes, before Redis granted the
// lock.
func (e *entry) noVerdictLocked(causes []error, w *waiter) *Verdict {
	front := e.waiters.Front()
	switch {
	case e.hold != nil || w.Value.h.Kind != ReadKind && !e.reads.none(): // a caller of this process has it
	case e.trouble != nil:
		return because(Unavailable, append(causes, e.trouble.cause)...)
	case e.refused || w.Value.queued || front != nil && front.Value.queued: // the lock is busy
	case e.silent != 0 && time.Since(e.engine.Epoch)-e.silent >= Silence:
		return because(Unavailable, append(causes, e.engine.Executor.Silence())...)
	}
	return because(NotAcquired, causes...)
}

// Silence is how long Redis may answer nothing before the error of a caller whose context ends is an outage
// instead of a busy lock.
const Silence = 50 * time.Millisecond
