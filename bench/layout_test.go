package bench

import (
	"bytes"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/bench/internal/contender"
	"github.com/holdfast-go/holdfast/bench/internal/report"
)

// result has one value of one metric.
func result(s scenario, row int, library, unit string, v float64) *report.Result {
	return &report.Result{Scenario: s.name, Load: s.rows[row].name, Library: library, Metrics: map[string]report.Series{unit: {0: v}}}
}

// The README has sentences and one chart, the page the table and all charts; both in place of what was there.
func TestPagesHaveFiguresAndCharts(t *testing.T) {
	r := &report.Report{Machine: report.Machine{Cores: 2, Placement: "not pinned"}, Results: []*report.Result{
		result(queue, 0, contender.Ours, unitLongest, 2), result(queue, 0, "rueidislock", unitLongest, 3),
		result(uncontended, 0, contender.Ours, unitRate, 90), result(uncontended, 0, "redsync", unitRate, 100),
		result(processes, 4, contender.Ours, unitRate, 80), result(processes, 4, "redislock", unitRate, 10),
		result(handover, 0, contender.Ours, unitHandover+unitP50, 2), result(handover, 0, "redislock", unitHandover+unitP50, 1), // polls: no chart
	}}
	r.Results[5].Metrics[unitJain] = report.Series{0: .0625}
	r.Results[6].Metrics[unitHandover+unitP50] = report.Series{0: 1, 1: 3, 2: 5} // better in the median, worse in most rounds
	r.Results[7].Metrics[unitHandover+unitP50] = report.Series{0: .9, 1: 4, 2: 4.5}
	before := []byte("before\n<!-- figures: written by bench/cmd/report -->\nstale\n<!-- /figures -->\nafter\n")
	for name, page := range map[string]struct {
		refresh    func([]byte, *report.Report, string) ([]byte, error)
		wants, not []string
	}{
		"README": {Layout().RefreshREADME, []string{
			"- Holdfast gains most where", "in each of 4 processes: 80.0 pairs of Lock and Unlock per second; redislock, 100 ms: 10.0.\n",
			"- It loses where a single caller takes a free lock: 90.0 pairs per second; redsync: 100.\n",
			`<img src="bench/results/day-processes.svg" width="49%" alt="One lock, `,
		}, []string{"stale", "day-queue.svg", "|"}},
		"page": {Layout().RefreshPage, []string{
			"](bench/results/day.md)", "2 cores, not pinned.",
			"| 2.00 | rueidislock | 3.00 | 1.50 × |", "| 90.0 | redsync | 100 | **0.9 ×** |", "| 80.0 | redislock, 100 ms (Jain 0.06) | 10.0 | 8.00 × |",
			"| 3.00 | redislock, 100 ms | 4.00 | level |",
			`<img src="bench/results/day-queue.svg" width="49%" alt="100 callers, `,
		}, []string{"stale", "day-distinct.svg", "loses"}},
	} {
		got, err := page.refresh(before, r, "bench/results/day.md")
		must(t, err)
		for _, want := range append(page.wants, "before\n", "\nafter\n") {
			if !bytes.Contains(got, []byte(want)) {
				t.Errorf("%s: no %q in:\n%s", name, want, got)
			}
		}
		for _, not := range page.not {
			if bytes.Contains(got, []byte(not)) {
				t.Errorf("%s: %q is in:\n%s", name, not, got)
			}
		}
		if again, err := page.refresh(got, r, "bench/results/day.md"); err != nil || !bytes.Equal(again, got) {
			t.Errorf("%s: a second time it differs: %v", name, err)
		}
	}
}

// README.md has every scenario, files that are there, and flags that report knows.
func TestREADMEIsOfToday(t *testing.T) {
	read := func(file string) string {
		text, err := os.ReadFile(file)
		must(t, err)
		return string(text)
	}
	readme, program := read("README.md"), read("cmd/report/main.go")
	for _, s := range scenarios {
		if !strings.Contains(readme, "`"+s.name+"`") {
			t.Errorf("%s is not in it", s.name)
		}
	}
	files := regexp.MustCompile("`([\\w/]+\\.go)`").FindAllStringSubmatch(readme, -1)
	for _, m := range files {
		if _, err := os.Stat(m[1]); err != nil {
			t.Error(err)
		}
	}
	flags := 0
	for _, command := range regexp.MustCompile(`(?m)^ +go run \./cmd/report.*$`).FindAllString(readme, -1) {
		for _, m := range regexp.MustCompile(` \(?-(\w+)`).FindAllStringSubmatch(command, -1) {
			flags++
			if !regexp.MustCompile(`flag\.\w+\((&[\w.]+, )?"` + m[1] + `"`).MatchString(program) {
				t.Errorf("report has no flag -%s", m[1])
			}
		}
	}
	if len(files) < 10 || flags < 5 {
		t.Errorf("only %d files and %d flags found", len(files), flags)
	}
}

// What people read is what was measured: each line between the marks of the README and of docs/PERFORMANCE.md stands in
// the latest report, or is a chart of it.
func TestResults_AreWhatIsShown(t *testing.T) {
	reports, err := filepath.Glob("results/*.md") // in the order of their dates
	if err != nil || len(reports) == 0 {
		t.Fatal("no reports: ", err)
	}
	latest := path.Base(reports[len(reports)-1])
	has := make(map[string]bool)
	for line := range strings.Lines(string(file(t, "results/"+latest))) {
		has[line] = true
	}
	links := regexp.MustCompile(`bench/(results/[^")]+)`)
	for _, page := range []string{"../README.md", "../docs/PERFORMANCE.md"} {
		_, rest, _ := bytes.Cut(file(t, page), []byte("<!-- figures: written by bench/cmd/report -->\n"))
		shown, _, ok := bytes.Cut(rest, []byte("<!-- /figures -->"))
		lines := 0
		for line := range strings.Lines(string(shown)) {
			linked := links.FindStringSubmatch(line)
			if linked == nil {
				if lines++; !has[line] {
					t.Errorf("%s shows what %s does not have: %s", page, latest, line)
				}
				continue
			}
			if !strings.HasPrefix(linked[1], "results/"+strings.TrimSuffix(latest, ".md")) {
				t.Errorf("%s shows what is not of %s: %s", page, latest, line)
			}
			file(t, linked[1])
		}
		if !ok || lines < 5 {
			t.Errorf("%s has marks: %t, and between them %d lines of figures", page, ok, lines)
		}
	}
}

func file(t *testing.T, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(name)
	must(t, err)
	return data
}
