package planted

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/yuin/gopher-lua/parse"
)

// variable is the environment's that says which bug is awake.
const variable = "HOLDFAST_PLANTED_BUG"

// Overlay is the library with bugs in it.
type Overlay struct {
	T     testing.TB
	root  string            // of the module, from the directory of the test
	Files map[string]string // by their path: new contents
	lua   strings.Builder   // edits of scripts, in Go
}

// New returns the library without a bug.
func New(t testing.TB, root string) *Overlay {
	return &Overlay{T: t, root: root, Files: map[string]string{}}
}

// PlantNamed plants the bug of Bugs with this name.
func (o *Overlay) PlantNamed(name string) {
	i := slices.IndexFunc(Bugs, func(b Bug) bool { return b.Name == name })
	if i < 0 {
		o.T.Fatalf("no such bug: %q", name)
	}
	o.Plant(&Bugs[i])
}

// Plant adds a bug.
func (o *Overlay) Plant(m *Bug) {
	for _, e := range m.Edits {
		path := filepath.Join(o.root, e.File)
		original, err := os.ReadFile(path)
		if err != nil {
			o.T.Fatal(err)
		}
		if n := strings.Count(string(original), e.Old); n != 1 {
			o.T.Errorf("%q: %s has the text to be replaced %d times, and must have it once:\n%s", m.Name, e.File, n, e.Old)
			continue
		}
		if strings.HasSuffix(e.File, ".lua") {
			fmt.Fprintf(&o.lua, "\t{%q, %q, %q, %q},\n", m.Name, e.File, e.Old, e.New)
			continue
		}
		o.Replace(path, e.Old, strings.ReplaceAll(e.New, "BUG", fmt.Sprintf("(plantedBug == %q)", m.Name)))
		o.Files[filepath.Join(filepath.Dir(path), "planted_bug.go")] = fmt.Sprintf("%s\n\nimport \"os\"\n\nvar plantedBug = os.Getenv(%q)\n", PackageOf(o.T, path), variable)
	}
}

var packageLine = regexp.MustCompile(`(?m)^package \w+$`)

// PackageOf returns the line that names a file's package.
func PackageOf(t testing.TB, path string) string {
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return packageLine.FindString(string(text))
}

// Replace changes a file, which may have been changed before.
func (o *Overlay) Replace(path, old, new string) {
	text, ok := o.Files[path]
	if !ok {
		original, err := os.ReadFile(path)
		if err != nil {
			o.T.Fatal(err)
		}
		text = string(original)
	}
	if strings.Count(text, old) != 1 {
		o.T.Errorf("%s: two bugs want to replace the same text:\n%s", path, old)
	}
	o.Files[path] = strings.Replace(text, old, new, 1)
}

// plantLua has the library edit its scripts as it reads them.
func (o *Overlay) plantLua() {
	o.Replace(filepath.Join(o.root, "internal/protocol/compose.go"), "return string(text)", "return plantInLua(file, string(text))")
	o.Files[filepath.Join(o.root, "internal/protocol/planted_lua.go")] = fmt.Sprintf(`package protocol

import (
	"os"
	"strings"
)

var bugsInLua = [][4]string{
%s}

func plantInLua(file, text string) string {
	for _, b := range bugsInLua {
		if b[0] == os.Getenv(%q) && b[1] == "scripts/"+file {
			text = strings.Replace(text, b[2], b[3], 1)
		}
	}
	return text
}
`, o.lua.String(), variable)
}

// write writes the files into a directory, and the list of them that go build takes, whose path it returns.
func (o *Overlay) write(dir string) (overlay string) {
	o.plantLua()
	replaced := map[string]string{}
	for path, text := range o.Files {
		abs, err := filepath.Abs(path)
		if err != nil {
			o.T.Fatal(err)
		}
		to := filepath.Join(dir, fmt.Sprintf("%d-%s", len(replaced), filepath.Base(path))) // the compiler names it
		if err := os.WriteFile(to, []byte(text), 0o600); err != nil {
			o.T.Fatal(err)
		}
		replaced[abs] = to
	}
	list, err := json.Marshal(map[string]any{"Replace": replaced})
	if err != nil {
		o.T.Fatal(err)
	}
	overlay = filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(overlay, list, 0o600); err != nil {
		o.T.Fatal(err)
	}
	return overlay
}

// Build compiles the test binary of a package under internal with the bugs, into a directory.
func (o *Overlay) Build(dir, pkg string) (binary string) {
	if o.T.Failed() { // a bug does not fit
		o.T.FailNow()
	}
	overlay := o.write(dir)
	binary = filepath.Join(dir, pkg+".test")
	cmd := exec.Command("go", "test", "-c", "-vet=off", "-ldflags=-w", "-overlay", overlay, "-o", binary, "./internal/"+pkg)
	cmd.Dir = o.root
	if out, err := cmd.CombinedOutput(); err != nil {
		o.T.Fatalf("%v\n%s", err, out)
	}
	return binary
}

// Wake returns a run of that binary in which a bug is awake.
func Wake(binary, bug string, args ...string) *exec.Cmd {
	cmd := exec.Command(binary, args...)
	cmd.Env = append(os.Environ(), variable+"="+bug)
	return cmd
}

// Parse fails if a script with the bug has an error of syntax.
func (m *Bug) Parse(t testing.TB, root string) {
	t.Helper()
	texts := map[string]string{}
	for _, e := range m.Edits {
		if !strings.HasSuffix(e.File, ".lua") {
			continue
		}
		if texts[e.File] == "" {
			text, err := os.ReadFile(filepath.Join(root, e.File))
			if err != nil {
				t.Fatal(err)
			}
			texts[e.File] = string(text)
		}
		texts[e.File] = strings.Replace(texts[e.File], e.Old, e.New, 1)
	}
	for file, text := range texts {
		text = regexp.MustCompile(`@[A-Z_]+@`).ReplaceAllString(text, "1") // constants of internal/protocol
		if _, err := parse.Parse(strings.NewReader(text), file); err != nil {
			t.Errorf("does not compile: %q: %v", m.Name, err)
		}
	}
}
