package engine

import (
	"time"

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
	t := e.known.inTrouble(cause)
	t.cause = cause
	t.requests++
	e.engine.Stats.Troubles.Add(1)
}

// Readmission is for how long requests are repeated if Redis has let the client in before and does not any more
// (NOAUTH, WRONGPASS, NOPERM): a password or a list of rights may be about to change. It is the default lease,
// which is how long a holder would ride that out.
const Readmission = 30 * time.Second

// barredForLongLocked is called when Redis does not let the client, and says so. It reports whether that has lasted
// for so long that it is final.
func (e *entry) barredForLongLocked(m *moment, cause error) bool {
	t, now := e.known.inTrouble(cause), m.now()
	if t.barred.IsZero() {
		t.barred = now
	}
	return now.Sub(t.barred) >= e.engine.Readmission
}

// pauseLocked asks again after a pause, which grows while the trouble lasts. A request that was sent
// before the pause began has failed together with the one it is for, as those of many fair waiters do.
func (e *entry) pauseLocked(m *moment, sent time.Time) {
	pauses := retry.New() // no trouble any more: a request ends late, and later ones were answered
	if t := e.known.trouble(); t != nil {
		if e.alarm == alarmPause && sent.Before(t.began) {
			return
		}
		pauses, t.began = t.pauses, m.now()
	}
	e.armLocked(m, alarmPause, pauses.NextBackOff())
	e.missed.add(missedPlaces)
}
