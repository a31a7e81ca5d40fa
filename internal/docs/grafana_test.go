package docs

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// series returns the name that the exporter of OpenTelemetry for Prometheus gives to a metric.
func series(name, maker, unit string) string {
	name = strings.ReplaceAll(name, ".", "_")
	switch {
	case unit == "s":
		name += "_seconds"
	case unit == "1" && maker == "age":
		name += "_ratio"
	}
	if maker == "counter" {
		name += "_total"
	}
	return name
}

// Each metric of the code has a panel, and each series of a query or an alert is one of the code's.
func TestGrafana_HasEveryMetric(t *testing.T) {
	dashboard := read(t, "docs/grafana/holdfast.json")
	known := []string{"holdfast_reason", "holdfast_outcome", "holdfast_type", "holdfast_wait_mode"} // attributes
	for _, m := range metrics(t) {
		known = append(known, series(m[2], m[1], m[3]))
		if !strings.Contains(dashboard, known[len(known)-1]) {
			t.Errorf("no panel has %s", m[2])
		}
	}
	found := regexp.MustCompile(`\bholdfast_[a-z_]+`).FindAllString(dashboard+read(t, "docs/grafana/rules.yml"), -1)
	for _, name := range found {
		if !slices.Contains(known, regexp.MustCompile(`_(bucket|count)$`).ReplaceAllString(name, "")) {
			t.Errorf("a query has %s, which the code does not make", name)
		}
	}
	if len(found) < 20 {
		t.Errorf("%d series found", len(found))
	}
}

// Grafana can import the dashboard: its panels have ids and places of their own.
func TestGrafana_PanelsAreApart(t *testing.T) {
	var d struct {
		UID    string
		Panels []struct {
			ID      int
			Title   string
			GridPos struct{ X, Y, W, H int }
		}
	}
	if err := json.Unmarshal([]byte(read(t, "docs/grafana/holdfast.json")), &d); err != nil || d.UID != "holdfast" || len(d.Panels) < 20 {
		t.Fatalf("%v, uid %q, %d panels", err, d.UID, len(d.Panels))
	}
	ids, taken := make(map[int]string), make(map[[2]int]string)
	for _, p := range d.Panels {
		if other := ids[p.ID]; other != "" {
			t.Errorf("%s and %s have the id %d", p.Title, other, p.ID)
		}
		ids[p.ID] = p.Title
		for x := range p.GridPos.W {
			for y := range p.GridPos.H {
				at := [2]int{p.GridPos.X + x, p.GridPos.Y + y}
				if other := taken[at]; other != "" {
					t.Fatalf("%s and %s overlap at %v", p.Title, other, at)
				}
				taken[at] = p.Title
			}
		}
	}
}

// The runbook has each alert's section.
func TestGrafana_RunbookHasTheSections(t *testing.T) {
	known := sections(read(t, "docs/RUNBOOK.md"))
	alerts := regexp.MustCompile(`docs/RUNBOOK\.md#([\w-]+)`).FindAllStringSubmatch(read(t, "docs/grafana/rules.yml"), -1)
	for _, m := range alerts {
		if !slices.Contains(known, m[1]) {
			t.Errorf("docs/RUNBOOK.md has no #%s", m[1])
		}
	}
	if len(alerts) < 5 {
		t.Errorf("%d alerts found", len(alerts))
	}
}
