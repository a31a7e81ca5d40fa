package bench

import (
	"bytes"
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"
)

// result has one value of one metric.
func result(s scenario, row int, library, unit string, v float64) *Result {
	return &Result{Scenario: s.name, Load: s.rows[row].name, Library: library, Metrics: map[string][]float64{unit: {v}}}
}

// What fails spoils neither the rest of a run nor its good name.
func TestReportKeepsWhatFailed(t *testing.T) {
	all := scenarios
	t.Cleanup(func() { scenarios = all })
	scenarios = []scenario{{
		name: "broken", rows: []row{{name: "procs=2", n: 1, procs: 2, hold: time.Millisecond}},
		libraries: pick(unlocked, ours), headline: unitRate, shown: []string{unitRate}, measure: measureCrowds,
	}}
	r, err := Run(t.Context(), testServer, Pinning{}, Plan{Rounds: 1, Window: 100 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Err(); len(r.Failed) != 1 || err == nil || !strings.Contains(err.Error(), unlocked) || !strings.Contains(err.Error(), "violations") {
		t.Errorf("failed: %v", r.Failed)
	}
	if len(r.Results) != 1 || r.Results[0].Library != ours {
		t.Errorf("results: %v", r.Results)
	}
	var text strings.Builder
	if err := r.Markdown(&text); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(text.String(), "**Failed** ") {
		t.Errorf("the report does not say so:\n%s", text.String())
	}
}

// A library that cannot run here is left out, with the reason.
func TestReportTellsWhatItSkipped(t *testing.T) {
	ready := redissonReady
	t.Cleanup(func() { redissonReady = ready })
	redissonReady = func() error { return errors.New("no mvn in PATH") }
	r, err := Run(t.Context(), testServer, Pinning{}, Plan{Rounds: 1, Window: 20 * time.Millisecond, Only: handover.name, Libraries: "redi"})
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Skipped) != 1 || r.Skipped[0] != "redisson: no mvn in PATH" {
		t.Errorf("skipped: %q", r.Skipped)
	}
	if len(r.Results) != 2 || len(r.Failed) != 0 { // redislock with two pauses
		t.Errorf("%d results, failed: %v", len(r.Results), r.Failed)
	}
}

func TestTargets(t *testing.T) {
	r := &Report{Results: []*Result{
		result(processes, 0, ours, unitRate, 130),
		result(processes, 0, "redsync", unitRate, 1000), // polls
		result(processes, 0, "rueidislock", unitRate, 100),
		result(handover, 0, ours, unitHandover+unitP50, 61),
		result(handover, 0, "rueidislock", unitHandover+unitP50, 100),
		result(queue, 0, ours, unitLongest, 1.5),
		result(held, 1, ours, unitHeap, 500),
	}}
	var b strings.Builder
	p := &printer{w: &b}
	p.targets(r)
	for _, line := range []string{
		"| processes | procs=2/goroutines=1 | pairs/s ÷ best event-driven rival's (rueidislock) | ≥ 1.30 | 1.30 | yes |",
		"| handover | procs=2/waiters=1 | handover-p50-µs ÷ best event-driven rival's (rueidislock) | ≤ 0.6 | 0.61 | no |",
		"| queue | procs=4/waiters=100 | longest/mean | ≤ 1.50 | 1.50 | yes |",
		"| held | locks=10000 | cmds/lock/tick | ≤ 0.02 | - | no |", // not measured is not reached
	} {
		if !strings.Contains(b.String(), line) {
			t.Errorf("no line %q in:\n%s", line, b.String())
		}
	}
}

func TestLosses(t *testing.T) {
	us, them := result(distinct, 0, ours, unitRate, 90), result(distinct, 0, "redsync", unitRate, 100)
	us.Metrics[unitCommands], them.Metrics[unitCommands] = []float64{2}, []float64{2}
	us.Metrics[unitServer], them.Metrics[unitServer] = []float64{20}, []float64{10}
	us.Metrics[unitClient], them.Metrics[unitClient] = []float64{10}, []float64{20}
	var units []string
	for _, l := range (&Report{Results: []*Result{us, them}}).losses() {
		units = append(units, l.unit)
	}
	if got := strings.Join(units, " "); got != unitRate+" "+unitServer {
		t.Errorf("lost: %s", got)
	}
}

func TestREADMEHasHeadlinesAndCharts(t *testing.T) {
	r := &Report{Machine: Machine{Cores: 2, Placement: "not pinned"}, Results: []*Result{
		result(queue, 0, ours, unitLongest, 2), result(queue, 0, "rueidislock", unitLongest, 3),
		result(uncontended, 0, ours, unitRate, 90), result(uncontended, 0, "redsync", unitRate, 100),
		result(processes, 4, ours, unitRate, 80), result(processes, 4, "redislock", unitRate, 10),
		result(handover, 0, "redislock", unitHandover+unitP50, 1), // polls: no chart
	}}
	r.Results[5].Metrics[unitJain] = []float64{.0625}
	readme := []byte("before\n" + string(figuresBegin) + "stale\n" + string(figuresEnd) + "\nafter\n")
	got, err := r.RefreshREADME(readme, "bench/results/day.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"before\n", "\nafter\n", "](bench/results/day.md)", "2 cores, not pinned.",
		"| 2.00 | 3.00 (rueidislock) | 1.50 × |", "| 90.0 | 100 (redsync) | **0.9 ×** |", "| 80.0 | 10.0 (redislock, 100 ms, Jain 0.06) | 8.00 × |",
		`<img src="bench/results/day-queue.svg" width="49%" alt="100 callers, `,
	} {
		if !bytes.Contains(got, []byte(want)) {
			t.Errorf("no %q in:\n%s", want, got)
		}
	}
	for _, not := range []string{"stale", "day-distinct.svg", "day-handover.svg"} {
		if bytes.Contains(got, []byte(not)) {
			t.Errorf("%q is still in:\n%s", not, got)
		}
	}
	if again, err := r.RefreshREADME(got, "bench/results/day.md"); err != nil || !bytes.Equal(again, got) {
		t.Errorf("a second time it differs: %v", err)
	}
}

// README.md has every scenario, files that are there, and flags that report knows.
func TestREADMEIsOfToday(t *testing.T) {
	read := func(file string) string {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	readme, report := read("README.md"), read("cmd/report/main.go")
	for _, s := range scenarios {
		if !strings.Contains(readme, "`"+s.name+"`") {
			t.Errorf("%s is not in it", s.name)
		}
	}
	files := regexp.MustCompile("`(\\w+\\.go)`").FindAllStringSubmatch(readme, -1)
	for _, m := range files {
		if _, err := os.Stat(m[1]); err != nil {
			t.Error(err)
		}
	}
	flags := 0
	for _, command := range regexp.MustCompile(`(?m)^ +go run \./cmd/report.*$`).FindAllString(readme, -1) {
		for _, m := range regexp.MustCompile(` \(?-(\w+)`).FindAllStringSubmatch(command, -1) {
			flags++
			if !regexp.MustCompile(`flag\.\w+\("` + m[1] + `"`).MatchString(report) {
				t.Errorf("report has no flag -%s", m[1])
			}
		}
	}
	if len(files) < 10 || flags < 5 {
		t.Errorf("only %d files and %d flags found", len(files), flags)
	}
}

// A chart says what it shows of whom, in fonts that every browser has.
func TestChartsNameTheLibraries(t *testing.T) {
	r := &Report{}
	for _, c := range charts {
		for _, i := range c.rows {
			for v, library := range []string{"rueidislock", ours} {
				x := r.find(c.scenario, c.scenario.rows[i], library)
				if x == nil {
					x = result(c.scenario, i, library, c.unit, 0)
					r.Results = append(r.Results, x)
				}
				x.Metrics[c.unit] = []float64{float64(v*(i+1) + 1)}
			}
		}
	}
	drawn := 0
	err := r.Charts(func(name string, svg io.WriterTo) error {
		c := charts[drawn]
		drawn++
		var b bytes.Buffer
		if _, err := svg.WriteTo(&b); err != nil {
			return err
		}
		for _, want := range []string{"<svg", ">Holdfast<", ">rueidislock<", ">" + c.title + "<", ">" + c.label + "<", ",sans-serif;", "fill:#FFFFFF"} {
			if !strings.Contains(b.String(), want) {
				t.Errorf("chart %s has no %q", name, want)
			}
		}
		return xml.Unmarshal(b.Bytes(), new(struct{}))
	})
	if err != nil || drawn != len(charts) {
		t.Errorf("%d of %d charts: %v", drawn, len(charts), err)
	}
}

// Whoever cannot tell two colours apart has the shapes, and no library is left without.
func TestChartsTellLibrariesApart(t *testing.T) {
	looks := make(map[string]string)
	for _, c := range charts {
		for _, l := range c.scenario.libraries {
			s, ok := styles[l.name]
			if !ok {
				t.Errorf("chart %s: %s has no style of its own", c.name, l.name)
			}
			shape := fmt.Sprintf("%T", s.shape)
			if other, ok := looks[shape]; ok && other != l.name {
				t.Errorf("%s looks like %s: %s", l.name, other, shape)
			}
			looks[shape] = l.name
		}
	}
}

func TestDecades(t *testing.T) {
	var labels []string
	for _, tick := range (decades{}).Ticks(.01, 1e6) {
		if tick.Label != "" {
			labels = append(labels, tick.Label)
		}
	}
	if got, want := strings.Join(labels, " "), "0.01 0.1 1 10 100 1k 10k 100k 1M"; got != want {
		t.Errorf("ticks %s, want %s", got, want)
	}
}

// Redisson sends three commands for a lock that nobody else wants: the DEL after the
// release counts, though the statistics cannot show it.
func TestCommandsOfAPairOfRedisson(t *testing.T) {
	l := pick("redisson")[0]
	runnable(t, l)
	tr := trial{testServer, l, row{n: 1}, time.Second}
	m, err := tr.crowds(context.Background(), tr.jobs(true))
	if err != nil {
		t.Fatal(err)
	}
	if got := m[unitCommands]; got < 2.7 || got > 3.3 { // with what else a connection says now and then
		t.Errorf("%v commands for a pair", got)
	}
}
