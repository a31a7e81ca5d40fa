package report

import (
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/bench/internal/contender"
)

const rate = "pairs/s"

// The figure on which a reader decides is the ratio within rounds, not of medians.
func TestRatio(t *testing.T) {
	a := &Result{Metrics: map[string]Series{rate: {0: 10, 1: 100, 2: 30}}}
	b := &Result{Metrics: map[string]Series{rate: {0: 5, 1: 10, 2: 10}}}
	if got, want := ratio(a, b, rate), "3.00 (2.00…10.0)"; got != want {
		t.Errorf("ratio is %q, want %q", got, want)
	}
	if got := ratio(a, nil, rate); got != "-" {
		t.Errorf("ratio to nothing is %q", got)
	}
}

func TestBestRival(t *testing.T) {
	s := Scenario{Name: "s", Libraries: contender.Pick("floor", contender.Ours, "redsync", "rueidislock"), Floor: "floor", Headline: rate}
	r := &Report{}
	for name, v := range map[string]float64{"floor": 9, contender.Ours: 8, "redsync": 2, "rueidislock": 3} {
		r.Results = append(r.Results, &Result{Scenario: "s", Load: "l", Library: name, Metrics: map[string]Series{rate: {0: v}}})
	}
	if got := r.bestRival(s, "l", s.Headline, s.Smaller).Library; got != "rueidislock" {
		t.Errorf("best rival is %s where more is better", got)
	}
	s.Smaller = true
	if got := r.bestRival(s, "l", s.Headline, s.Smaller).Library; got != "redsync" {
		t.Errorf("best rival is %s where less is better", got)
	}
}

func TestLosses(t *testing.T) {
	s := Scenario{
		Name: "s", Loads: []string{"l"}, Libraries: contender.Pick(contender.Ours, "redsync"), Ours: contender.Ours,
		Headline: rate, Shown: []string{rate, "commands", "server", "client"},
	}
	us := &Result{Scenario: "s", Load: "l", Library: contender.Ours, Metrics: map[string]Series{
		rate: {0: 90}, "commands": {0: 2}, "server": {0: 20}, "client": {0: 10},
	}}
	them := &Result{Scenario: "s", Load: "l", Library: "redsync", Metrics: map[string]Series{
		rate: {0: 100}, "commands": {0: 2}, "server": {0: 10}, "client": {0: 20},
	}}
	var units []string
	for _, l := range (&Report{Results: []*Result{us, them}}).losses([]Scenario{s}) {
		units = append(units, l.unit)
	}
	if got := strings.Join(units, " "); got != rate+" server" {
		t.Errorf("lost: %s", got)
	}
}
