package lock

import (
	"testing"
	"time"
)

// However long the pauses of a request have grown, one is short while a call waits for the answer: a request of before may
// fail after that call began. The engine sees to those that Close waits for.
func TestRepeated_AwaitedPausesAreShort(t *testing.T) {
	m := &Moment{world: least{}}
	r := new(Repeated)
	for range 10 {
		r.pause(m)
	}
	if d := r.pause(m); d < 300*time.Millisecond {
		t.Errorf("no call waits: %v", d)
	}
	r.later = append(r.later, "an Unlock")
	if d := r.pause(m); d > AwaitedPause {
		t.Errorf("an Unlock waits: %v", d)
	}
}

// least is a world of which only chance is asked.
type least struct{ World }

func (least) Chance(int64) int64 { return 0 }
