package lock

import (
	"testing"
	"time"
)

// What may still be under way is refused for a while by what its release leaves behind: so that is repeated
// for at least as long, however soon the lock itself would be gone.
func TestRelease_LastsForAsLongAsACopyMayCome(t *testing.T) {
	for _, unclear := range []bool{false, true} {
		var m Moment
		m.Begin(releasing{}, new(Settings))
		m.Date(time.Now())
		h := &Hold{lock: new(Lock), Terms: &Terms{Options: Options{TTL: time.Second}}, copies: copies{unclear: unclear}}
		left := newRelease(&m, h, false).until.Sub(m.Now())
		if least := Burial; unclear && left < least || !unclear && left > least {
			t.Errorf("unclear %v: given up after %v", unclear, left)
		}
	}
}

// releasing is a world of which only releases are asked.
type releasing struct{ World }

func (releasing) Facts() Facts { return Facts{} }
