package sim

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/yuin/gopher-lua/parse"
)

var (
	mutantsFlag = flag.String("mutants", "quick", "which planted bugs are looked for: quick, all, or what their names match")
	withinFlag  = flag.Int("within", 100, "within how many seeds a planted bug must be found")
	slotsFlag   = flag.Int("slots", 2, "how many planted bugs are looked for at a time")
)

// plantedVar is the environment's variable that says which bug is planted.
const plantedVar = "HOLDFAST_PLANTED_BUG"

const root = "../.."

// overlay is the library with all bugs in it, each asleep until plantedVar names it: so one binary serves all.
type overlay struct {
	t     *testing.T
	files map[string]string // by their path: new contents
	lua   strings.Builder   // edits of scripts, in Go
}

// plant adds a bug.
func (o *overlay) plant(m *mutant) {
	for _, e := range m.edits {
		path := filepath.Join(root, e.file)
		original, err := os.ReadFile(path)
		if err != nil {
			o.t.Fatal(err)
		}
		if n := strings.Count(string(original), e.old); n != 1 {
			o.t.Errorf("%q: %s has the text to be replaced %d times, and must have it once:\n%s", m.name, e.file, n, e.old)
			continue
		}
		if strings.HasSuffix(e.file, ".lua") {
			fmt.Fprintf(&o.lua, "\t{%q, %q, %q, %q},\n", m.name, e.file, e.old, e.new)
			continue
		}
		o.replace(path, e.old, strings.ReplaceAll(e.new, "BUG", fmt.Sprintf("(plantedBug == %q)", m.name)))
		o.files[filepath.Join(filepath.Dir(path), "planted_bug.go")] = fmt.Sprintf("%s\n\nimport \"os\"\n\nvar plantedBug = os.Getenv(%q)\n", packageOf(o.t, path), plantedVar)
	}
}

var packageLine = regexp.MustCompile(`(?m)^package \w+$`)

// packageOf returns the line that names a file's package.
func packageOf(t *testing.T, path string) string {
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return packageLine.FindString(string(text))
}

// replace changes a file, which may have been changed before.
func (o *overlay) replace(path, old, new string) {
	text, ok := o.files[path]
	if !ok {
		original, err := os.ReadFile(path)
		if err != nil {
			o.t.Fatal(err)
		}
		text = string(original)
	}
	if strings.Count(text, old) != 1 {
		o.t.Errorf("%s: two bugs want to replace the same text:\n%s", path, old)
	}
	o.files[path] = strings.Replace(text, old, new, 1)
}

// plantLua has the library edit its scripts as it reads them.
func (o *overlay) plantLua() {
	o.replace(filepath.Join(root, "internal/protocol/compose.go"), "return string(text)", "return plantInLua(file, string(text))")
	o.files[filepath.Join(root, "internal/protocol/planted_lua.go")] = fmt.Sprintf(`package protocol

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
`, o.lua.String(), plantedVar)
}

// write writes the files into a directory, and the list of them that go build takes, whose path it returns.
func (o *overlay) write(dir string) (overlay string) {
	o.plantLua()
	replaced := map[string]string{}
	for path, text := range o.files {
		abs, err := filepath.Abs(path)
		if err != nil {
			o.t.Fatal(err)
		}
		to := filepath.Join(dir, fmt.Sprintf("%d-%s", len(replaced), filepath.Base(path))) // the compiler names it
		if err := os.WriteFile(to, []byte(text), 0o600); err != nil {
			o.t.Fatal(err)
		}
		replaced[abs] = to
	}
	list, err := json.Marshal(map[string]any{"Replace": replaced})
	if err != nil {
		o.t.Fatal(err)
	}
	overlay = filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(overlay, list, 0o600); err != nil {
		o.t.Fatal(err)
	}
	return overlay
}

// build compiles the test binary of this package with the bugs, and returns what the compiler says; "": nothing.
func (o *overlay) build() (binary, said string) {
	dir, err := os.MkdirTemp("", "holdfast-sim")
	if err != nil {
		o.t.Fatal(err)
	}
	built.dir = dir
	overlay := o.write(dir)
	binary = filepath.Join(dir, "sim.test")
	if out, err := exec.Command("go", "test", "-c", "-ldflags=-w", "-overlay", overlay, "-o", binary, ".").CombinedOutput(); err != nil {
		return "", fmt.Sprintf("%v\n%s", err, out)
	}
	return binary, ""
}

// compile compiles the library with the bugs, and returns what the compiler says; "": nothing.
func (o *overlay) compile() string {
	cmd := exec.Command("go", "build", "-overlay", o.write(o.t.TempDir()), ".")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Sprintf("%v\n%s", err, out)
	}
	return ""
}

// planted is the library with bugs, and with timers that stand still with their process.
func planted(t *testing.T, bugs ...mutant) *overlay {
	o := &overlay{t: t, files: map[string]string{}}
	o.stand()
	for i := range bugs {
		o.plant(&bugs[i])
	}
	return o
}

// built is the test binary with all of that, which is built once.
var built struct {
	sync.Mutex
	dir    string // TestMain removes it; "": it has not been built
	binary string
	said   string // by the compiler
}

// buildPlanted builds it, and returns what the compiler says.
func buildPlanted(t *testing.T) (binary, said string) {
	built.Lock()
	defer built.Unlock()
	if built.dir == "" {
		o := planted(t, mutants...)
		if t.Failed() {
			t.FailNow()
		}
		built.binary, built.said = o.build()
	}
	return built.binary, built.said
}

func plantedBinary(t *testing.T) string {
	binary, said := buildPlanted(t)
	if said != "" {
		t.Fatal(said)
	}
	return binary
}

// notShort keeps a test out of make check, since it builds the library with bugs first; and from running once more under the race
// detector, which what it builds does not have.
func notShort(t *testing.T) {
	t.Helper()
	if testing.Short() || raced {
		t.Skip("make test runs it")
	}
}

// Who changes a text in which a bug is planted has to change the bug.
func TestMutants_FitTheCode(t *testing.T) { planted(t, mutants...) }

// Nor may a change of the code keep a bug from compiling. All bugs are compiled together, as the gate needs them, and one by one only to find
// out which of them does not.
func TestMutants_Compile(t *testing.T) {
	notShort(t)
	for i := range mutants {
		mutants[i].parse(t)
	}
	_, said := buildPlanted(t)
	if bad := uncompiled(t, mutants, said); len(bad) > 0 {
		t.Errorf("do not compile: %s", strings.Join(bad, "\n"))
	}
}

// uncompiled returns the names of the bugs that do not compile, each with what the compiler says; said is what it says of all together.
func uncompiled(t *testing.T, bugs []mutant, said string) (bad []string) {
	if said == "" {
		return nil
	}
	for _, m := range bugs {
		suspect := slices.ContainsFunc(m.edits, func(e edit) bool { return strings.Contains(said, "-"+filepath.Base(e.file)+":") })
		if !suspect {
			continue
		}
		if said := planted(t, m).compile(); said != "" {
			bad = append(bad, fmt.Sprintf("%q: %s", m.name, said))
		}
	}
	if bad == nil { // the timers, or two bugs that get into each other's way
		bad = append(bad, "all together: "+said)
	}
	return bad
}

// parse fails if a script with the bug has an error of syntax.
func (m *mutant) parse(t *testing.T) {
	t.Helper()
	texts := map[string]string{}
	for _, e := range m.edits {
		if !strings.HasSuffix(e.file, ".lua") {
			continue
		}
		if texts[e.file] == "" {
			text, err := os.ReadFile(filepath.Join(root, e.file))
			if err != nil {
				t.Fatal(err)
			}
			texts[e.file] = string(text)
		}
		texts[e.file] = strings.Replace(texts[e.file], e.old, e.new, 1)
	}
	for file, text := range texts {
		text = regexp.MustCompile(`@[A-Z_]+@`).ReplaceAllString(text, "1") // constants of internal/protocol
		if _, err := parse.Parse(strings.NewReader(text), file); err != nil {
			t.Errorf("does not compile: %q: %v", m.name, err)
		}
	}
}

// A bug that does not compile is named.
func TestMutants_ThatDoNotCompileAreNamed(t *testing.T) {
	notShort(t)
	bad := mutant{name: "no such function", edits: []edit{{"internal/validity/validity.go", "return sent.Add(ttl - Margin(ttl))", "if BUG {\n\t\tnoSuchFunction()\n\t}\n\treturn sent.Add(ttl - Margin(ttl))"}}}
	good := mutant{name: "good", edits: []edit{{"internal/wire/owner.go", "buf = strconv.AppendUint(buf, n, 10)", "if BUG {\n\t\tn = 1\n\t}\n\tbuf = strconv.AppendUint(buf, n, 10)"}}}
	all := []mutant{good, bad}
	if got := uncompiled(t, all, planted(t, all...).compile()); len(got) != 1 || !strings.Contains(got[0], `"no such function"`) || !strings.Contains(got[0], "undefined: noSuchFunction") {
		t.Errorf("%q", got)
	}
}

// The judges are as good as the bugs that they find.
func TestMutants_AreFound(t *testing.T) {
	notShort(t)
	binary := plantedBinary(t)
	slots := make(chan struct{}, *slotsFlag)
	for i := range mutants {
		m := &mutants[i]
		if !m.wanted() {
			continue
		}
		t.Run(strings.ReplaceAll(m.name, " ", "_"), func(t *testing.T) {
			t.Parallel()
			slots <- struct{}{}
			defer func() { <-slots }()
			began := time.Now()
			cmd := exec.Command(binary, "-test.run", "^TestWorlds$", "-test.timeout", "10m", "-seed", "1", fmt.Sprintf("-stalls=%v", m.stall), fmt.Sprintf("-leavers=%v", m.leave), fmt.Sprintf("-lingerers=%v", m.linger), "-seeds", fmt.Sprint(*withinFlag), "-stop", "-shape", string(m.shape), "-rules", m.by)
			cmd.Env = append(os.Environ(), plantedVar+"="+m.name)
			out, err := cmd.CombinedOutput()
			switch found := foundLine.FindSubmatch(out); {
			case err == nil:
				t.Errorf("not found in %d seeds by the judges that should: %q", *withinFlag, m.by)
			case found != nil:
				t.Logf("found by world %s: %s (%v)", found[1], found[2], time.Since(began).Round(100*time.Millisecond))
			case m.by != "":
				t.Errorf("no judge has found it: %s", panicLine.Find(out))
			default:
				t.Logf("found: %s (%v)", panicLine.Find(out), time.Since(began).Round(100*time.Millisecond))
			}
		})
	}
}

var foundLine = regexp.MustCompile(`red: world (\d+): (.*)`)

var panicLine = regexp.MustCompile(`(?m)^panic: .*|^--- FAIL.*`)

func (m *mutant) wanted() bool {
	switch *mutantsFlag {
	case "quick":
		return m.quick
	case "all":
		return true
	}
	return regexp.MustCompile(*mutantsFlag).MatchString(m.name)
}
