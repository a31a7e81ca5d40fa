package bench

import (
	"errors"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/bench/internal/contender"
	"github.com/holdfast-go/holdfast/bench/internal/load"
)

// A single writer loses no increment, so it is its readers that tell.
func TestReadersTellAWriter(t *testing.T) {
	r := row{n: 2, procs: 2, hold: time.Millisecond}
	_, err := writer.measure(t.Context(), trial{testServer, contender.Pick(contender.Unlocked)[0], r, 200 * time.Millisecond})
	if v := (load.Violation{}); !errors.As(err, &v) {
		t.Errorf("a writer among readers without a lock: %v", err)
	}
}

// What several processes do is added up, and nothing of it is lost.
func TestFleetCounts(t *testing.T) {
	for _, name := range []string{contender.Ours, "redisson"} {
		t.Run(name, func(t *testing.T) {
			l := contender.Pick(name)[0]
			runnable(t, l)
			m, err := measureCrowds(t.Context(), trial{testServer, l, row{n: 2, procs: 2, hold: time.Millisecond}, 300 * time.Millisecond})
			if err != nil {
				t.Fatal(err)
			}
			// A millisecond under the lock bounds the rate; two processes share it.
			if rate := m[unitRate]; rate < 20 || rate > 1000 {
				t.Errorf("%v pairs/s", rate)
			}
			for _, unit := range []string{unitWait + unitP50, unitHandover + unitP50, unitCommands, unitServer, unitClient, unitConns, unitMemory, unitJainProc} {
				if m[unit] <= 0 {
					t.Errorf("%s is %v", unit, m[unit])
				}
			}
		})
	}
}
