package docs

import (
	"flag"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/internal/locktest"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

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
