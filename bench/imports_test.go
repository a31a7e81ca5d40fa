package bench

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// Dependencies point one way, as README.md says: packages below import no other of this
// module than these.
func TestImportsPointOneWay(t *testing.T) {
	const module = "github.com/holdfast-go/holdfast/bench/"
	allowed := map[string][]string{
		"internal/contender": nil,
		"internal/load":      {"internal/contender"},
		"internal/report":    {"internal/contender"},
	}
	format := `{{.ImportPath}}{{range .Imports}} {{.}}{{end}}`
	out, err := exec.Command("go", "list", "-f", format, "./internal/...").Output()
	if err != nil {
		t.Fatal(err)
	}
	known := 0
	for line := range strings.Lines(string(out)) {
		imports := strings.Fields(line)
		name := strings.TrimPrefix(imports[0], module)
		if _, ok := allowed[name]; !ok {
			t.Errorf("%s is not in this test", name)
			continue
		}
		known++
		for _, path := range imports[1:] {
			if path, ours := strings.CutPrefix(path, module); ours && !slices.Contains(allowed[name], path) {
				t.Errorf("%s must not import %s", name, path)
			}
		}
	}
	if known != len(allowed) {
		t.Errorf("%d packages of %d found", known, len(allowed))
	}
}
