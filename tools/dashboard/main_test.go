package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const root = "../.."

// The files are what the code and the tables make of them.
func TestDashboard_IsGenerated(t *testing.T) {
	texts, err := generate(root)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range texts {
		if got, err := os.ReadFile(filepath.Join(root, "docs/grafana", name)); err != nil || !bytes.Equal(got, want) {
			t.Errorf("docs/grafana/%s is out of date (%v): go run ./tools/dashboard", name, err)
		}
	}
}

// Each metric of the code is in a panel, and each series of a query is one of the code's.
func TestDashboard_HasEveryMetric(t *testing.T) {
	metrics, err := readMetrics(filepath.Join(root, "internal/telemetry"))
	if err != nil {
		t.Fatal(err)
	}
	if m := metrics["holdfast.acquire.duration"]; m.kind != histogram || m.prometheus() != "holdfast_acquire_duration_seconds" {
		t.Errorf("%+v: %s", m, m.prometheus())
	}
	if m := metrics["holdfast.lost"]; m.prometheus() != "holdfast_lost_total" || metrics["holdfast.held"].prometheus() != "holdfast_held" {
		t.Errorf("%+v: %s", m, m.prometheus())
	}
	texts, err := generate(root)
	if err != nil {
		t.Fatal(err)
	}
	all := string(texts["holdfast.json"]) + string(texts["rules.yml"])
	series := make(map[string]bool)
	for _, m := range metrics {
		series[m.prometheus()] = true
		if !strings.Contains(string(texts["holdfast.json"]), m.prometheus()) {
			t.Errorf("no panel has %s", m.name)
		}
	}
	found := regexp.MustCompile(`\bholdfast_[a-z_]+`).FindAllString(all, -1)
	for _, name := range found {
		base := regexp.MustCompile(`_(bucket|count)$`).ReplaceAllString(name, "")
		if attribute := regexp.MustCompile(`^holdfast_(reason|outcome|type|wait_mode)$`).MatchString(name); !series[name] && !series[base] && !attribute {
			t.Errorf("a query has %s, which the code does not make", name)
		}
	}
	if len(found) < 20 || strings.Contains(all, "<holdfast.") || strings.Contains(all, "$f") {
		t.Errorf("%d series found", len(found))
	}
}

// Links to the dashboard and to its panels stay, also when a metric is added.
func TestDashboard_IDsAreStable(t *testing.T) {
	few := map[string]metric{"holdfast.held": {"holdfast.held", gauge, "{lock}"}, "holdfast.waiters": {"holdfast.waiters", gauge, "{waiter}"},
		"holdfast.lost": {"holdfast.lost", counter, ""}, "holdfast.renewals": {"holdfast.renewals", counter, ""}, "holdfast.acquire.duration": {"holdfast.acquire.duration", histogram, "s"},
		"holdfast.release.duration": {"holdfast.release.duration", histogram, "s"}, "holdfast.pubsub.reconnects": {"holdfast.pubsub.reconnects", counter, ""},
		"holdfast.pubsub.subscriptions": {"holdfast.pubsub.subscriptions", gauge, ""}}
	ids := func(metrics map[string]metric) map[string]int {
		text, err := newDashboard(metrics)
		if err != nil {
			t.Fatal(err)
		}
		var d struct {
			UID    string
			Panels []struct {
				ID      int
				Title   string
				GridPos struct{ X, Y, W, H int }
			}
		}
		if err := json.Unmarshal(text, &d); err != nil || d.UID != "holdfast" {
			t.Fatalf("%v, uid %q", err, d.UID)
		}
		all, taken := make(map[string]int), make(map[[2]int]string)
		for _, p := range d.Panels {
			all[p.Title] = p.ID
			for x := range p.GridPos.W {
				for y := range p.GridPos.H {
					at := [2]int{p.GridPos.X + x, p.GridPos.Y + y}
					if other := taken[at]; other != "" || at[0] >= columns {
						t.Fatalf("%s and %s overlap at %v", p.Title, other, at)
					}
					taken[at] = p.Title
				}
			}
		}
		return all
	}
	before := ids(few)
	for name := range planned {
		few[name] = metric{name, gauge, "s"}
	}
	after := ids(few)
	for title, id := range before {
		if after[title] != id {
			t.Errorf("%s had the id %d and has %d", title, id, after[title])
		}
	}
	if len(after) <= len(before) {
		t.Errorf("%d panels, and %d with all metrics", len(before), len(after))
	}
	if _, err := newRules(map[string]metric{}); err == nil {
		t.Error("a metric that does not exist is not found out")
	}
}

// The runbook has each alert's section.
func TestDashboard_RunbookHasTheSections(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "docs/RUNBOOK.md"))
	if err != nil {
		t.Fatal(err)
	}
	sections := make(map[string]bool)
	for _, m := range regexp.MustCompile(`(?m)^#+ (.+)$`).FindAllStringSubmatch(string(text), -1) {
		sections[strings.ReplaceAll(regexp.MustCompile(`[^\p{L}\p{N} _-]`).ReplaceAllString(strings.ToLower(m[1]), ""), " ", "-")] = true
	}
	for _, r := range rules {
		if !sections[r.runbook] {
			t.Errorf("%s: docs/RUNBOOK.md has no #%s", r.name, r.runbook)
		}
	}
}
