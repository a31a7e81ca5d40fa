package bench

import (
	"strings"
	"testing"
	"time"
)

func TestReportHasAllThatWasAskedFor(t *testing.T) {
	const rounds = 2
	steps := 0
	r, err := Run(t.Context(), testServer, Pinning{}, Plan{
		Rounds:   rounds,
		Window:   10 * time.Millisecond,
		Only:     uncontended.name,
		Progress: func(int, int, string) { steps++ },
	})
	if err != nil {
		t.Fatal(err)
	}
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
	if err := r.Markdown(&text); err != nil {
		t.Fatal(err)
	}
	for _, l := range uncontended.libraries {
		if !strings.Contains(text.String(), "| "+l.name+" |") {
			t.Errorf("no line for %s in:\n%s", l.name, text.String())
		}
	}
}

// The figure on which a reader decides is the ratio within rounds, not of medians.
func TestRatio(t *testing.T) {
	a := &Result{Metrics: map[string][]float64{unitRate: {10, 100, 30}}}
	b := &Result{Metrics: map[string][]float64{unitRate: {5, 10, 10}}}
	if got, want := ratio(a, b, unitRate), "3.00 (2.00…10.0)"; got != want {
		t.Errorf("ratio is %q, want %q", got, want)
	}
	if got := ratio(a, nil, unitRate); got != "-" {
		t.Errorf("ratio to nothing is %q", got)
	}
}

func TestBestRival(t *testing.T) {
	s := scenario{name: "s", libraries: pick("floor", ours, "redsync", "rueidislock"), headline: unitRate}
	load := row{name: "l"}
	r := &Report{}
	for name, v := range map[string]float64{"floor": 9, ours: 8, "redsync": 2, "rueidislock": 3} {
		r.Results = append(r.Results, &Result{Scenario: "s", Load: "l", Library: name, Metrics: map[string][]float64{unitRate: {v}}})
	}
	if got := r.bestRival(s, load).Library; got != "rueidislock" {
		t.Errorf("best rival is %s where more is better", got)
	}
	s.smaller = true
	if got := r.bestRival(s, load).Library; got != "redsync" {
		t.Errorf("best rival is %s where less is better", got)
	}
}

func TestNumber(t *testing.T) {
	for v, want := range map[float64]string{
		0: "0", .0156: "0.016", 2: "2.00", 12.34: "12.3", 123.4: "123", 1234: "1,234", 1234567: "1,234,567", -26.2: "-26.2", -123: "-123",
	} {
		if got := number(v); got != want {
			t.Errorf("number(%v) = %q, want %q", v, got, want)
		}
	}
}
