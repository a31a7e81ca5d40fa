package lock

import (
	"testing"
	"time"
)

// A round that was long only because its caller stepped aside is not a long one: else
// a caller that has stepped aside once would always do so.
func TestAbsence_IsNotLongForHavingSteppedAside(t *testing.T) {
	for stepped, want := range map[bool]time.Duration{false: 90 * time.Minute, true: 30 * time.Minute} {
		now := time.Now()
		var m Moment
		m.Begin(nil, &Settings{Aside: time.Hour})
		m.Date(now)
		l := &Lock{absence: &absence{since: now.Add(-90 * time.Minute), stepped: stepped}}
		l.returned(&m)
		if l.absence.before != want {
			t.Errorf("stepped aside: %v: it was away for %v, want %v", stepped, l.absence.before, want)
		}
	}
}
