package bench

import (
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
	var text strings.Builder
	must(t, Layout().Markdown(&text, r))
	for _, l := range uncontended.libraries {
		if !strings.Contains(text.String(), "| "+l.Name+" |") {
			t.Errorf("no line for %s in:\n%s", l.Name, text.String())
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
	var text strings.Builder
	must(t, Layout().Markdown(&text, r))
	if !strings.Contains(text.String(), "**Failed** ") {
		t.Errorf("the report does not say so:\n%s", text.String())
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
