package sim

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// What is left is what it takes: here a fault, and a section of another lock than the first.
func TestShrink_KeepsWhatItTakes(t *testing.T) {
	fault := func(p *Plan) bool {
		return slices.ContainsFunc(p.Faults, func(f Fault) bool { return f.Kind == "kill" })
	}
	section := func(p *Plan) bool {
		for _, q := range p.Processes {
			for _, w := range q.Workers {
				if slices.ContainsFunc(w.Steps, func(s Step) bool { return s.Lock == 1 }) {
					return true
				}
			}
		}
		return false
	}
	shrunk := 0
	for seed := range uint64(200) {
		plan := Draw(seed)
		if !fault(plan) || !section(plan) {
			continue
		}
		before, small := plan.size(), Shrink(plan, func(p *Plan) bool { return fault(p) && section(p) })
		if len(small.Faults) != 1 || small.size() != 3 || plan.size() != before {
			t.Errorf("seed %d: %d parts became %d, with %d faults", seed, before, small.size(), len(small.Faults))
		}
		shrunk++
	}
	if shrunk == 0 {
		t.Error("no seed has both")
	}
}

// A plan and its form in JSON are the same.
func TestPlan_SurvivesJSON(t *testing.T) {
	for seed := range uint64(20) {
		a, b := Draw(seed), Draw(seed).clone()
		x, _ := json.Marshal(a)
		y, _ := json.Marshal(b)
		if string(x) != string(y) {
			t.Errorf("%s\n%s", x, y)
		}
	}
}

// shrink looks for the smallest plan that breaks the same promise, and writes it to a file.
func shrink(t *testing.T, r *Result) {
	tries := 0
	small := Shrink(r.Plan, func(p *Plan) bool {
		for range 3 { // it does not always run in the same way
			tries++
			if again := inBubble(t, p); len(again.Found) > 0 && again.Found[0].Rule == r.Found[0].Rule {
				return true
			}
		}
		return false
	})
	text, err := json.MarshalIndent(small, "", "\t")
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(os.TempDir(), "holdfast-sim.json")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Logf("%d parts became %d in %d runs: go test ./internal/sim -run 'TestPlan$' -args -plan %s\n%s", r.Plan.size(), small.size(), tries, file,
		inBubble(t, small).report(*traceFlag))
}

// A plan of a file, as -shrink has written it.
func TestPlan(t *testing.T) {
	if *planFlag == "" {
		return
	}
	text, err := os.ReadFile(*planFlag)
	if err != nil {
		t.Fatal(err)
	}
	plan := new(Plan)
	if err := json.Unmarshal(text, plan); err != nil {
		t.Fatal(err)
	}
	if r := inBubble(t, plan); len(r.Found) > 0 {
		t.Errorf("red: %v\n%s", r.Found[0], r.report(*traceFlag))
	}
}
