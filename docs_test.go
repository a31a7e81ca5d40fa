package holdfast_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast"
)

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// The program at the top of the README is Example, which runs.
func TestREADME_ProgramIsTheExample(t *testing.T) {
	_, body, ok := strings.Cut(read(t, "example_test.go"), "func Example() {")
	if !ok {
		t.Fatal("no Example")
	}
	body, _, _ = strings.Cut(body, "\t// Output:")
	if !strings.Contains(read(t, "README.md"), "```go\nfunc Example() {"+body+"}\n```") {
		t.Error("the README's program is not the body of Example")
	}
}

// The defaults in the README's table are those of the code.
func TestREADME_DefaultsAreTheCodes(t *testing.T) {
	readme := read(t, "README.md")
	for option, value := range map[string]any{
		"WithLease(d)":        holdfast.DefaultLease,
		"WithPollInterval(d)": holdfast.DefaultPollInterval,
		"WithHandoffSlice(d)": holdfast.DefaultHandoffSlice,
		"WithFairPatience(d)": holdfast.DefaultFairPatience,
		"WithPublishMode(m)":  holdfast.PublishAuto,
	} {
		if row := fmt.Sprintf("| `%s` | %v |", option, value); !strings.Contains(readme, row) {
			t.Errorf("the README has no row %q", row)
		}
	}
}

// Every error of the package is in the README's table.
func TestREADME_ListsEveryError(t *testing.T) {
	readme := read(t, "README.md")
	for _, m := range regexp.MustCompile(`(?m)^\t(Err\w+) = errors\.New`).FindAllStringSubmatch(read(t, "errors.go"), -1) {
		if !strings.Contains(readme, "| `"+m[1]+"` |") {
			t.Errorf("%s is not in the README", m[1])
		}
	}
}

// Links between the documents, to their sections and to pictures lead somewhere.
func TestDocs_LinksLeadSomewhere(t *testing.T) {
	link := regexp.MustCompile(`\]\(([^)#]*)(?:#([^)]+))?\)|src="([^"]+)"`)
	n := 0
	for _, file := range glob(t, "*.md", "*/*.md", "*/*/*.md") {
		for _, m := range link.FindAllStringSubmatch(read(t, file), -1) {
			to, section := m[1]+m[3], m[2]
			if strings.Contains(to, "://") {
				continue
			}
			n++
			if to = filepath.Join(filepath.Dir(file), to); m[1]+m[3] == "" {
				to = file
			}
			if _, err := os.Stat(to); err != nil {
				t.Errorf("%s: %v", file, err)
			} else if section != "" && !slices.Contains(sections(read(t, to)), section) {
				t.Errorf("%s: %s has no section #%s", file, to, section)
			}
		}
	}
	if n < 50 {
		t.Errorf("only %d links found", n)
	}
}

// sections returns the names by which headings are linked to.
func sections(markdown string) (names []string) {
	for _, m := range regexp.MustCompile(`(?m)^#+ (.+)$`).FindAllStringSubmatch(markdown, -1) {
		name := regexp.MustCompile(`[^\p{L}\p{N} _-]`).ReplaceAllString(strings.ToLower(m[1]), "")
		names = append(names, strings.ReplaceAll(name, " ", "-"))
	}
	return names
}

// The tests named in the table of invariants exist.
func TestArchitecture_NamesRealTests(t *testing.T) {
	_, table, _ := strings.Cut(read(t, "docs/ARCHITECTURE.md"), "## Invariants")
	table, _, _ = strings.Cut(table, "\n## ")
	var all strings.Builder
	for _, pattern := range []string{"internal/*/*.go", "*_test.go"} {
		files, _ := filepath.Glob(pattern)
		for _, f := range files {
			all.WriteString(read(t, f))
		}
	}
	for _, row := range strings.Split(table, "\n") {
		cells := strings.Split(row, "|")
		if len(cells) < 5 || strings.Contains(cells[4], "test (") || strings.Contains(cells[4], "---") {
			continue
		}
		for _, name := range regexp.MustCompile(`\b[A-Z]\w{4,}\b`).FindAllString(cells[4], -1) {
			if !strings.Contains(all.String(), `"`+name+`"`) && !strings.Contains(all.String(), "func "+name+"(") && !strings.Contains(all.String(), ") "+name+"(") {
				t.Errorf("there is no test %s", name)
			}
		}
	}
}

// Each file of the package is in the table of files.
func TestArchitecture_ListsEveryFile(t *testing.T) {
	picture, _, _ := strings.Cut(read(t, "docs/ARCHITECTURE.md"), "\n## States")
	for _, f := range glob(t, "*.go") {
		if !strings.HasSuffix(f, "_test.go") && f != "doc.go" && !strings.Contains(picture, "`"+f+"`") {
			t.Errorf("it does not list %s", f)
		}
	}
}

// The table of planted bugs has all of them.
func TestSafety_ListsEverySeededBug(t *testing.T) {
	safety := read(t, "docs/SAFETY.md")
	bugs := regexp.MustCompile(`Bug\{Name: "([^"]+)"`).FindAllStringSubmatch(read(t, "internal/chaos/bugs_test.go"), -1)
	if len(bugs) < 10 {
		t.Fatalf("%d bugs found", len(bugs))
	}
	for _, m := range bugs {
		if !strings.Contains(safety, "| "+m[1]+" |") {
			t.Errorf("docs/SAFETY.md has no row %q: make safety writes it", m[1])
		}
	}
}
