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

// The program at the top of the README is the body of Example, which runs, on a server
// of the usual address.
func TestREADME_ProgramIsTheExample(t *testing.T) {
	_, body, _ := strings.Cut(read(t, "example_test.go"), "func Example() {\n")
	body, _, ok := strings.Cut(body, "\t// Output:")
	if !ok {
		t.Fatal("no Example")
	}
	body = strings.ReplaceAll("\n"+body, "\n\t", "\n")
	body = strings.Replace(body, "Addr: addr", `Addr: "localhost:6379"`, 1)
	if first := blocks(read(t, "README.md"), "go")[0]; "\n"+first != body {
		t.Errorf("the README's first program is not the body of Example, which is\n%s", body)
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

// sources is the text of all tests, and of the scenarios and kinds that they are made of.
func sources(t *testing.T) string {
	t.Helper()
	var all strings.Builder
	for _, f := range glob(t, "*_test.go", "internal/*/*.go", "examples/*/*_test.go") {
		all.WriteString(read(t, f))
	}
	return all.String()
}

// row is one of a table of what is tested.
type row struct{ id, tests string }

// tested are the rows of the tables of promises, scenarios and faults.
func tested(t *testing.T) (rows []row) {
	t.Helper()
	for _, file := range []string{"docs/SAFETY.md", "docs/SCENARIOS.md"} {
		for _, m := range regexp.MustCompile(`(?m)^\| ((?:AC-|[SNLHF])\d+) \| [^|]+ \| ([^|]+) \|`).FindAllStringSubmatch(read(t, file), -1) {
			rows = append(rows, row{m[1], m[2]})
		}
	}
	if len(rows) < 100 {
		t.Fatalf("%d rows found", len(rows))
	}
	return rows
}

// Each promise, scenario and fault in the tables is shown by tests, and these exist.
func TestSafety_NamesRealTests(t *testing.T) {
	all := sources(t)
	for _, r := range tested(t) {
		names := regexp.MustCompile(`\b[A-Z]\w{4,}\b`).FindAllString(r.tests, -1)
		if len(names) == 0 {
			t.Errorf("%s: nothing shows it", r.id)
		}
		for _, name := range names {
			if !strings.Contains(all, "\""+name+"\": func(") && !strings.Contains(all, "func "+name+"(") {
				t.Errorf("%s: there is no test %s", r.id, name)
			}
		}
	}
}

// A scenario that the tables name is one, and not two of one name.
func TestSafety_ScenariosHaveNamesOfTheirOwn(t *testing.T) {
	seen := make(map[string]string)
	for _, f := range glob(t, "internal/locktest/*.go") {
		for _, m := range regexp.MustCompile(`(?m)^\t"(\w+)": func\(`).FindAllStringSubmatch(read(t, f), -1) {
			if other := seen[m[1]]; other != "" {
				t.Errorf("%s is in %s and %s", m[1], other, f)
			}
			seen[m[1]] = f
		}
	}
	if len(seen) < 200 {
		t.Errorf("%d scenarios found", len(seen))
	}
}

// Whatever number of a scenario, promise or fault a comment gives is in the tables.
func TestSafety_ExplainsEveryNumber(t *testing.T) {
	known := make(map[string]bool)
	for _, r := range tested(t) {
		if known[r.id] {
			t.Errorf("%s has two rows", r.id)
		}
		known[r.id] = true
	}
	comment := regexp.MustCompile(`(?m)//.*$`)
	number := regexp.MustCompile(`\bAC-\d+\b|\b[SNLHF]\d{1,2}\b`)
	for _, c := range comment.FindAllString(sources(t), -1) {
		for _, id := range number.FindAllString(c, -1) {
			if !known[id] {
				t.Errorf("%s is explained nowhere, in %q", id, c)
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

// Each metric and each span is in the table of docs/OPERATIONS.md.
func TestOperations_ListsEveryMetricSpanAndAttribute(t *testing.T) {
	operations := read(t, "docs/OPERATIONS.md")
	names := regexp.MustCompile(`"((?:holdfast|lock)\.[a-z.]+)", (?:metric\.|t\.|time)`).FindAllStringSubmatch(read(t, "telemetry.go"), -1)
	if len(names) < 10 {
		t.Fatalf("%d names found", len(names))
	}
	names = append(names, regexp.MustCompile(`attribute\.Key\("([a-z._]+)"\)`).FindAllStringSubmatch(read(t, "telemetry.go"), -1)...)
	for _, m := range names {
		if !strings.Contains(operations, "`"+m[1]+"`") {
			t.Errorf("%s is not in it", m[1])
		}
	}
}
