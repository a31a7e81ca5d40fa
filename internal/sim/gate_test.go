package sim

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/planted"
)

var (
	mutantsFlag = flag.String("mutants", "quick", "which planted bugs are looked for: quick, all, or what their names match")
	withinFlag  = flag.Int("within", 100, "within how many seeds a planted bug must be found")
	slotsFlag   = flag.Int("slots", 2, "how many planted bugs are looked for at a time")
)

const root = "../.."

// overlay is the library with bugs.
type overlay struct{ *planted.Overlay }

// build compiles the test binary of this package with the bugs, and returns what the compiler says; "": nothing.
func (o *overlay) build() (binary, said string) {
	dir, err := os.MkdirTemp("", "holdfast-sim")
	if err != nil {
		o.T.Fatal(err)
	}
	built.dir = dir
	return o.Build(dir, "sim")
}

// withBugs is the library with bugs, and with timers that stand still with their process.
func withBugs(t *testing.T, bugs ...planted.Bug) *overlay {
	o := &overlay{planted.New(t, root)}
	o.stand()
	for i := range bugs {
		o.Plant(&bugs[i])
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

func plantedBinary(t *testing.T) string {
	built.Lock()
	defer built.Unlock()
	if built.dir == "" {
		o := withBugs(t, planted.Bugs...)
		if t.Failed() {
			t.FailNow()
		}
		built.binary, built.said = o.build()
	}
	if built.said != "" {
		t.Fatal(built.said)
	}
	return built.binary
}

// notShort keeps a test out of make check, since it builds the library with bugs first; and from running once more under the race
// detector, which what it builds does not have.
func notShort(t *testing.T) {
	t.Helper()
	if testing.Short() || raced {
		t.Skip("make test runs it")
	}
}

// A change of a text in which a bug is planted changes the bug as well.
func TestMutants_FitTheCode(t *testing.T) { withBugs(t, planted.Bugs...) }

// Nor may a change of the code keep a bug from compiling. All bugs are compiled together, as the gate needs them; the compiler names the line, and so the
// bug.
func TestMutants_Compile(t *testing.T) {
	notShort(t)
	for i := range planted.Bugs {
		planted.Bugs[i].Parse(t, root)
	}
	plantedBinary(t)
}

// The judges are as good as the bugs that they find.
func TestMutants_AreFound(t *testing.T) {
	notShort(t)
	binary := plantedBinary(t)
	slots := make(chan struct{}, *slotsFlag)
	for i := range planted.Bugs {
		m := &planted.Bugs[i]
		if !wanted(m) {
			continue
		}
		t.Run(strings.ReplaceAll(m.Name, " ", "_"), func(t *testing.T) {
			t.Parallel()
			slots <- struct{}{}
			defer func() { <-slots }()
			began := time.Now()
			cmd := exec.Command(binary, "-test.run", "^TestWorlds$", "-test.timeout", "10m", "-seed", "1", fmt.Sprintf("-stalls=%v", m.Stall), fmt.Sprintf("-leavers=%v", m.Leave), fmt.Sprintf("-lingerers=%v", m.Linger), fmt.Sprintf("-extras=%v", m.Extra), "-seeds", fmt.Sprint(*withinFlag), "-stop", "-shape", string(m.Shape), "-rules", m.By)
			cmd.Env = append(os.Environ(), planted.Var+"="+m.Name)
			out, err := cmd.CombinedOutput()
			switch found := foundLine.FindSubmatch(out); {
			case err == nil:
				t.Errorf("not found in %d seeds by the judges that should: %q", *withinFlag, m.By)
			case found != nil:
				t.Logf("found by world %s: %s (%v)", found[1], found[2], time.Since(began).Round(100*time.Millisecond))
			case m.By != "":
				t.Errorf("no judge has found it: %s", panicLine.Find(out))
			default:
				t.Logf("found: %s (%v)", panicLine.Find(out), time.Since(began).Round(100*time.Millisecond))
			}
		})
	}
}

var foundLine = regexp.MustCompile(`red: world (\d+): (.*)`)

var panicLine = regexp.MustCompile(`(?m)^panic: .*|^--- FAIL.*`)

func wanted(m *planted.Bug) bool {
	if m.Shape == planted.NoWorld {
		return false
	}
	switch *mutantsFlag {
	case "quick":
		return m.Quick
	case "all":
		return true
	}
	return regexp.MustCompile(*mutantsFlag).MatchString(m.Name)
}
