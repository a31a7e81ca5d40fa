package engine

import (
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/retry"
)

// However long the pauses of a request have grown, one is short while a call waits for the answer: a request of before may
// fail after that call began.
func TestRepeated_AwaitedPausesAreShort(t *testing.T) {
	pause := func(r *repeated, closed bool) time.Duration {
		return r.pauseLocked(&moment{engine: &Engine{closed: closed}})
	}
	grown := func() *repeated {
		r := &repeated{pauses: retry.New()}
		for range 10 {
			pause(r, false)
		}
		return r
	}
	if d := pause(grown(), false); d < 300*time.Millisecond {
		t.Errorf("no call waits: %v", d)
	}
	r := grown()
	r.later = append(r.later, make(chan *Verdict, 1))
	if d := pause(r, false); d > awaitedPause {
		t.Errorf("an Unlock waits: %v", d)
	}
	if d := pause(grown(), true); d > awaitedPause {
		t.Errorf("Close waits: %v", d)
	}
}
