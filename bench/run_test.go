package bench

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/bench/internal/contender"
	"github.com/holdfast-go/holdfast/bench/internal/load"
)

func TestReportHasAllThatWasAskedFor(t *testing.T) {
	const rounds = 2
	steps := 0
	r, err := Run(t.Context(), testServer, load.Pinning{}, Plan{
		Rounds:   rounds,
		Window:   10 * time.Millisecond,
		Only:     uncontended.name,
		Progress: func(int, int, string) { steps++ },
	})
	must(t, err)
	if len(r.Results) != len(uncontended.libraries) {
		t.Fatalf("%d results for %d libraries", len(r.Results), len(uncontended.libraries))
	}
	want := rounds * uncontended.slices
	if steps != want*len(uncontended.libraries) {
		t.Errorf("%d steps", steps)
	}
	for _, x := range r.Results {
		shown := uncontended.shown
		if x.Library == "redisson" {
			shown = []string{unitRate, unitCommands, unitServer} // the others are of this process
		}
		for _, unit := range shown {
			if len(x.Metrics[unit]) != want {
				t.Errorf("%s has %d values of %s, want %d", x.Library, len(x.Metrics[unit]), unit, want)
			}
		}
	}
	text := string(Layout().Markdown(r))
	for _, l := range uncontended.libraries {
		if !strings.Contains(text, "| "+l.Name+" |") {
			t.Errorf("no line for %s in:\n%s", l.Name, text)
		}
	}
}

// What fails spoils neither the rest of a run nor its good name.
func TestReportKeepsWhatFailed(t *testing.T) {
	all := scenarios
	t.Cleanup(func() { scenarios = all })
	scenarios = []scenario{{
		name: "broken", rows: []row{{name: "procs=2", n: 1, procs: 2, hold: time.Millisecond}},
		libraries: contender.Pick(contender.Unlocked, contender.Ours), headline: unitRate, shown: []string{unitRate}, measure: measureCrowds,
	}}
	r, err := Run(t.Context(), testServer, load.Pinning{}, Plan{Rounds: 1, Window: 100 * time.Millisecond})
	must(t, err)
	if err := r.Err(); len(r.Failed) != 1 || err == nil || !strings.Contains(err.Error(), contender.Unlocked) || !strings.Contains(err.Error(), "violations") {
		t.Errorf("failed: %v", r.Failed)
	}
	if len(r.Results) != 1 || r.Results[0].Library != contender.Ours {
		t.Errorf("results: %v", r.Results)
	}
	text := string(Layout().Markdown(r))
	if !strings.Contains(text, "**Failed** ") {
		t.Errorf("the report does not say so:\n%s", text)
	}
}

// A library that cannot run here is left out, with the reason.
func TestReportTellsWhatItSkipped(t *testing.T) {
	all := scenarios
	t.Cleanup(func() { scenarios = all })
	s := handover
	s.libraries = contender.Pick("redislock", "redislock-1ms", "rueidislock", "redisson")
	s.libraries[3].Needs = func() error { return errors.New("no mvn in PATH") }
	scenarios = []scenario{s}
	r, err := Run(t.Context(), testServer, load.Pinning{}, Plan{Rounds: 1, Window: 20 * time.Millisecond, Libraries: "redi"})
	must(t, err)
	if len(r.Skipped) != 1 || r.Skipped[0] != "redisson: no mvn in PATH" {
		t.Errorf("skipped: %q", r.Skipped)
	}
	if len(r.Results) != 2*len(s.rows) || len(r.Failed) != 0 { // redislock with two pauses
		t.Errorf("%d results, failed: %v", len(r.Results), r.Failed)
	}
}

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
