package lock

import (
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/retry"
)

// However long the pauses of a request have grown, one is short while a call waits for the answer: a request of before may
// fail after that call began.
func TestRepeated_AwaitedPausesAreShort(t *testing.T) {
	pause := func(r *Repeated, closed bool) time.Duration {
		return r.pause(&Moment{world: closing{is: closed}})
	}
	grown := func() *Repeated {
		r := &Repeated{pauses: retry.New()}
		for range 10 {
			pause(r, false)
		}
		return r
	}
	if d := pause(grown(), false); d < 300*time.Millisecond {
		t.Errorf("no call waits: %v", d)
	}
	r := grown()
	r.later = append(r.later, "an Unlock")
	if d := pause(r, false); d > awaitedPause {
		t.Errorf("an Unlock waits: %v", d)
	}
	if d := pause(grown(), true); d > awaitedPause {
		t.Errorf("Close waits: %v", d)
	}
}

// closing is a world of which only that is asked.
type closing struct {
	World
	is bool
}

func (w closing) Closing() bool { return w.is }
