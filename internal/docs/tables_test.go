package docs

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/internal/locktest"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

func read(t *testing.T, file string) string {
	t.Helper()
	inModule()
	text, err := os.ReadFile(file)
	must(t, err)
	return string(text)
}

// The program at the top of the README is the body of Example, which runs on a server of the usual address. It is a
// whole program: it is built here as a reader would copy it, and prints what Example prints.
func TestREADME_ProgramIsTheExample(t *testing.T) {
	_, body, _ := strings.Cut(read(t, "example_test.go"), "func Example() {\n")
	body, output, ok := strings.Cut(body, "\t// Output: ")
	if !ok {
		t.Fatal("no Example")
	}
	output, _, _ = strings.Cut(output, "\n")
	body = strings.Replace(body, "Addr: addr", `Addr: "localhost:6379"`, 1)
	program := blocks(read(t, "README.md"), "go")[0]
	if _, main, _ := strings.Cut(program, "func main() {\n"); main != body+"}\n" {
		t.Errorf("the README's first program is not the body of Example, which is\n%s", body)
	}
	if said := runs(t, program); said != output && !testing.Short() {
		t.Errorf("it prints %q, not %q", said, output)
	}
}

// So is the program of GUIDE.
func TestGuide_ProgramRuns(t *testing.T) {
	programs := slices.DeleteFunc(blocks(read(t, "docs/GUIDE.md"), "go"), func(b string) bool { return !strings.HasPrefix(b, "package main") })
	if len(programs) != 1 {
		t.Fatalf("%d programs", len(programs))
	}
	files := strings.Split(runs(t, programs[0]), "\n")
	slices.Sort(files)
	if files = slices.Compact(files); len(files) != 20 && !testing.Short() {
		t.Errorf("it downloads %q", files)
	}
}

// runs builds a whole program as a reader would copy it, and returns what it prints; "" where there is no server.
func runs(t *testing.T, program string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "main.go")
	must(t, os.WriteFile(file, []byte(strings.Replace(program, "localhost:6379", addr, 1)), 0o600))
	if said, err := exec.Command("gofmt", "-l", file).CombinedOutput(); err != nil || len(said) > 0 {
		t.Errorf("gofmt: %s, %v", said, err)
	}
	command := exec.Command("go", "run", file)
	if testing.Short() { // make check has no server
		command = exec.Command("go", "vet", file)
	}
	said, err := command.CombinedOutput()
	if err != nil {
		t.Errorf("%s: %s, %v", command, said, err)
	}
	return strings.TrimSpace(string(said))
}

// The README names the versions that go.mod asks for.
func TestREADME_DependsOnTheVersionsItNames(t *testing.T) {
	_, status, _ := strings.Cut(read(t, "README.md"), "**Status:**")
	status, _, _ = strings.Cut(status, "\n## ")
	mod := read(t, "go.mod")
	for what, pattern := range map[string]string{"Go %s": `(?m)^go (\d+\.\d+)`, "v%s.": `go-redis/v9 v(\d+\.\d+)`} {
		m := regexp.MustCompile(pattern).FindStringSubmatch(mod)
		if m == nil || !strings.Contains(status, fmt.Sprintf(strings.TrimSuffix(what, "."), m[1])) {
			t.Errorf("the README does not name %q of go.mod", m)
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
	for _, f := range glob(t, "*_test.go", "internal/*/*.go", "internal/*/*/*.go", "examples/*/*_test.go", "cmd/holdfast/*_test.go") {
		all.WriteString(read(t, f))
	}
	return all.String()
}

// row is one of a table of what is tested.
type row struct{ id, tests string }

// tested are the rows of the tables of promises, scenarios and faults.
func tested(t *testing.T) (rows []row) {
	t.Helper()
	for _, file := range []string{"docs/internals/VERIFICATION.md", "docs/internals/SCENARIOS.md"} {
		for _, m := range regexp.MustCompile(`(?m)^\| ((?:AC-|[SNLHFUETPW])\d+) \| [^|]+ \| ([^|]+) \|`).FindAllStringSubmatch(read(t, file), -1) {
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
	number := regexp.MustCompile(`\bAC-\d+\b|\b[SNLHFP]\d{1,2}\b`)
	for _, c := range comment.FindAllString(sources(t), -1) {
		for _, id := range number.FindAllString(c, -1) {
			if !known[id] {
				t.Errorf("%s is explained nowhere, in %q", id, c)
			}
		}
	}
}

// Each file of the root, of the state machine and of the engine is in a table of files.
func TestArchitecture_ListsEveryFile(t *testing.T) {
	picture, _, _ := strings.Cut(read(t, "docs/internals/ARCHITECTURE.md"), "\n## States")
	root, inside, _ := strings.Cut(picture, "### Files of the state machine")
	machine, engine, _ := strings.Cut(inside, "### Files of the engine")
	for _, f := range glob(t, "*.go", "internal/engine/*.go", "internal/lock/*.go") {
		table, name := root, filepath.Base(f)
		switch filepath.Dir(f) {
		case "internal/engine":
			table = engine
		case "internal/lock":
			table = machine
		}
		if !strings.HasSuffix(f, "_test.go") && f != "doc.go" && !strings.Contains(table, "`"+name+"`") {
			t.Errorf("it does not list %s", f)
		}
	}
}

// The table of bugs that chaos must find has all of them.
func TestSafety_ListsEveryPlantedBug(t *testing.T) {
	safety := read(t, "docs/internals/VERIFICATION.md")
	bugs := regexp.MustCompile(`(?m)^\t\{"([^"]+)", "[^"]+", "`).FindAllStringSubmatch(read(t, "internal/chaos/bugs_test.go"), -1)
	if len(bugs) < 10 {
		t.Fatalf("%d bugs found", len(bugs))
	}
	for _, m := range bugs {
		if !strings.Contains(safety, "| "+m[1]+" |") {
			t.Errorf("docs/internals/VERIFICATION.md has no row %q: make safety writes it", m[1])
		}
	}
}

// Each metric and each span is in the table of docs/OPERATIONS.md.
func TestOperations_ListsEveryMetricSpanAndAttribute(t *testing.T) {
	operations := read(t, "docs/OPERATIONS.md")
	names := regexp.MustCompile(`"((?:holdfast|lock)\.[a-z.]+)", (?:"|t\.)`).FindAllStringSubmatch(read(t, "internal/telemetry/telemetry.go"), -1)
	if len(names) < 10 {
		t.Fatalf("%d names found", len(names))
	}
	names = append(names, regexp.MustCompile(`attribute\.Key\("([a-z._]+)"\)`).FindAllStringSubmatch(read(t, "internal/telemetry/telemetry.go"), -1)...)
	for _, m := range names {
		if !strings.Contains(operations, "`"+m[1]+"`") {
			t.Errorf("%s is not in it", m[1])
		}
	}
	kinds := map[string]string{"histogram": "histogram", "counter": "counter", "number": "up-down counter", "age": "gauge"}
	documented := regexp.MustCompile("(?m)^\\| `(holdfast\\.[a-z.]+)` \\| (histogram|gauge|(?:up-down )?counter)(?:, (\\w+))? \\|").FindAllStringSubmatch(operations, -1)
	made := metrics(t)
	if len(documented) != len(made) || len(made) < 15 {
		t.Errorf("%d metrics are documented, and %d made", len(documented), len(made))
	}
	for _, m := range made {
		row := []string{m[2], kinds[m[1]], strings.Trim(m[3], "{}")}
		if m[3][0] == '{' {
			row[2] = "" // a thing that is counted
		}
		if !slices.ContainsFunc(documented, func(d []string) bool { return slices.Equal(d[1:], row) }) {
			t.Errorf("the table has no row %q", row)
		}
	}
}

// metrics are the instruments of the code: how it makes each, its name and its unit.
func metrics(t *testing.T) [][]string {
	t.Helper()
	return regexp.MustCompile(`= (\w+)\("(holdfast\.[a-z.]+)", "([^"]+)"`).FindAllStringSubmatch(read(t, "internal/telemetry/telemetry.go"), -1)
}

var update = flag.Bool("update", false, "TestDocs_ScenariosSayWhereTheyRun: write docs/internals/SCENARIOS.md")

// The table of docs/internals/SCENARIOS.md has each scenario of internal/locktest, and where it runs.
func TestDocs_ScenariosSayWhereTheyRun(t *testing.T) {
	const file, begin, end = "docs/internals/SCENARIOS.md", "<!-- begin: where they run -->\n", "<!-- end: where they run -->\n"
	var table strings.Builder
	table.WriteString("| group | scenario | kinds | virtual | real servers | in `make test` |\n|---|---|---|---|---|---|\n")
	all := sources(t)
	for _, m := range regexp.MustCompile(`(?m)^\t"(\w+)": func\(e \*Env\)`).FindAllStringSubmatch(all, -1) {
		if !slices.ContainsFunc(locktest.Places(), func(p locktest.Place) bool { return p.Name == m[1] }) {
			t.Errorf("%s runs nowhere: its map is in no group", m[1])
		}
	}
	for _, p := range locktest.Places() {
		fmt.Fprintf(&table, "| %s | %s | %s | %s | %s | %s |\n", p.Group, p.Name, p.Kinds, p.Virtual, p.Real, p.Quick)
	}
	text := read(t, file)
	before, rest, ok := strings.Cut(text, begin)
	old, after, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatalf("%s has no table between its markers", file)
	}
	if old == table.String() {
		return
	}
	if !*update {
		t.Fatalf("%s does not say where all scenarios run: go test -run TestDocs_Scenarios ./internal/docs -args -update", file)
	}
	must(t, os.WriteFile(file, []byte(before+begin+table.String()+end+after), 0o666))
}

// The commands that run one scenario name its group.
func TestDocs_ScenariosOfCommandsExist(t *testing.T) {
	n := 0
	for _, f := range []string{"CONTRIBUTING.md", "internal/locktest/locktest.go"} {
		for _, m := range regexp.MustCompile(`-run '\^Test\w+\$/(?:\S+/)?\^?(\w+)\$?/\^?(\w+)\$?'`).FindAllStringSubmatch(read(t, f), -1) {
			n++
			if !slices.ContainsFunc(locktest.Places(), func(p locktest.Place) bool { return p.Group == m[1] && p.Name == m[2] }) {
				t.Errorf("%s: %s runs nothing", f, m[0])
			}
		}
	}
	redistest.Want(t, n, 4, "%d commands found, want 4")
}
