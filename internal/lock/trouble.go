package lock

import "time"

// trouble is what is remembered while requests bring no verdict.
type trouble struct {
	cause    error // of the last one
	requests int   // in a row
	pauses   Pauses
	began    time.Time // the latest pause
	barred   time.Time // when Redis first did not let the client; zero: it did not say so
}

// troubled records a request that brought no verdict.
func (lk *Lock) troubled(m *Moment, cause error) {
	t := lk.known.inTrouble(m, cause)
	t.cause = cause
	t.requests++
	m.effects().Counts.Troubles++
}

// Readmission is for how long requests are repeated if Redis has let the client in before and does not any more
// (NOAUTH, WRONGPASS, NOPERM): a password or a list of rights may be about to change. It is the default lease,
// which is how long a holder would ride that out.
const Readmission = 30 * time.Second

// barredForLong is called when Redis does not let the client, and says so. It reports whether that has lasted
// for so long that it is final.
func (lk *Lock) barredForLong(m *Moment, cause error) bool {
	t, now := lk.known.inTrouble(m, cause), m.Now()
	if t.barred.IsZero() {
		t.barred = now
	}
	return now.Sub(t.barred) >= m.set.Readmission
}

// pause asks again after a pause, which grows while the trouble lasts. A request that was sent
// before the pause began has failed together with the one it is for, as those of many fair waiters do.
func (lk *Lock) pause(m *Moment, sent time.Time) {
	pauses := m.world.Pauses() // no trouble any more: a request ends late, and later ones were answered
	if t := lk.known.trouble(); t != nil {
		if lk.alarm == alarmPause && sent.Before(t.began) {
			return
		}
		pauses, t.began = t.pauses, m.Now()
	}
	lk.arm(m, alarmPause, pauses.NextBackOff())
	lk.missed.add(missedPlaces)
}

// PausesLeft are the pauses of trouble; nil: there is none.
func (lk *Lock) PausesLeft() Pauses {
	if t := lk.known.trouble(); t != nil {
		return t.pauses
	}
	return nil
}
