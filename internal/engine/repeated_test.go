package engine

import (
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/retry"
)

// However long the pauses of a request have grown, one is short while a call waits for the answer: a request of before may
// fail after that call began.
func TestRepeated_AwaitedPausesAreShort(t *testing.T) {
	grown := func(eng *Engine) *repeated {
		r := &repeated{entry: &entry{engine: eng}, pauses: retry.New()}
		for range 10 {
			r.pauseLocked()
		}
		return r
	}
	if pause := grown(&Engine{}).pauseLocked(); pause < 300*time.Millisecond {
		t.Errorf("no call waits: %v", pause)
	}
	r := grown(&Engine{})
	r.later = append(r.later, make(chan *Verdict, 1))
	if pause := r.pauseLocked(); pause > awaitedPause {
		t.Errorf("an Unlock waits: %v", pause)
	}
	if pause := grown(&Engine{closed: true}).pauseLocked(); pause > awaitedPause {
		t.Errorf("Close waits: %v", pause)
	}
}
