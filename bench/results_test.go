package bench

import (
	"bytes"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

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
