package bench

import (
	"bytes"
	"encoding/json"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/bench/internal/report"
)

// What people read is what was measured: the Markdown file, the README's sentences and the
// table of docs/PERFORMANCE.md are those of the latest run.
func TestResults_AreWhatIsShown(t *testing.T) {
	runs, err := filepath.Glob("results/*.json") // in the order of their dates
	if err != nil || len(runs) == 0 {
		t.Fatal("no results: ", err)
	}
	latest := runs[len(runs)-1]
	page := strings.TrimSuffix(latest, ".json") + ".md"
	var found report.Report
	if err := json.Unmarshal(file(t, latest), &found); err != nil {
		t.Fatal(err)
	}
	var text bytes.Buffer
	if err := Layout().Markdown(&text, &found); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(text.Bytes(), file(t, page)) {
		t.Errorf("%s is not what %s says: go run ./cmd/report -from %s", page, latest, latest)
	}
	for name, refresh := range map[string]func([]byte, *report.Report, string) ([]byte, error){
		"../README.md": Layout().RefreshREADME, "../docs/PERFORMANCE.md": Layout().RefreshPage,
	} {
		shown := file(t, name)
		link := map[string]string{"../README.md": "bench", "../docs/PERFORMANCE.md": "../bench"}[name]
		refreshed, err := refresh(shown, &found, path.Join(link, filepath.ToSlash(page)))
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(refreshed, shown) {
			t.Errorf("the figures of %s are not those of %s: go run ./cmd/report -from %s -readme ../README.md -page ../docs/PERFORMANCE.md", name, latest, latest)
		}
	}
}

func file(t *testing.T, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return data
}
