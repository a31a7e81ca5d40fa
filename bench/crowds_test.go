package bench

import (
	"context"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/bench/internal/contender"
)

// What several processes do is added up, and nothing of it is lost.
func TestFleetCounts(t *testing.T) {
	for _, name := range []string{contender.Ours, "redisson"} {
		t.Run(name, func(t *testing.T) {
			l := contender.Pick(name)[0]
			runnable(t, l)
			m, err := measureCrowds(t.Context(), trial{testServer, l, row{n: 2, procs: 2, hold: time.Millisecond}, time.Second})
			must(t, err)
			// A millisecond under the lock bounds the rate; two processes share it. How slow a
			// machine is, is unknown.
			if rate := m[unitRate]; rate <= 0 || rate > 1000 {
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

// Redisson sends three commands for a lock without contention: the DEL after the
// release counts, though the statistics cannot show it.
func TestCommandsOfAPairOfRedisson(t *testing.T) {
	l := contender.Pick("redisson")[0]
	runnable(t, l)
	tr := trial{testServer, l, row{n: 1}, time.Second}
	m, err := tr.crowds(context.Background(), tr.jobs(true))
	must(t, err)
	if got := m[unitCommands]; got < 2.7 || got > 3.3 { // with what else a connection says now and then
		t.Errorf("%v commands for a pair", got)
	}
}
