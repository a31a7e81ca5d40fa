package sim

import (
	"flag"
	"fmt"
	"os"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/planted"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

var mutantsFlag = flag.String("mutants", "quick", "which planted bugs are looked for: quick, all, or what their names match")

// within is how many seeds may be needed to find a planted bug, and slots is how many bugs are looked for at a time.
const (
	within = 100
	slots  = 2
)

const root = "../.."

// withBugs is the library with bugs, and with timers that stand still with their process.
func withBugs(t *testing.T) *planted.Overlay {
	o := planted.New(t, root)
	stand(o)
	for i := range planted.Bugs {
		o.Plant(&planted.Bugs[i])
	}
	return o
}

// built is the test binary with all of that, which is built once.
var built struct {
	sync.Mutex
	dir    string // TestMain removes it; "": there is none
	binary string // "": it has not been built
}

func plantedBinary(t *testing.T) string {
	built.Lock()
	defer built.Unlock()
	if built.dir == "" {
		dir, err := os.MkdirTemp("", "holdfast-sim")
		redistest.Must(t, err)
		built.dir = dir
	}
	if built.binary == "" {
		built.binary = withBugs(t).Build(built.dir, "sim")
	}
	return built.binary
}

// notShort keeps a test out of make check, since it builds the library with bugs first; and from running once more under the race
// detector, which what it builds does not have.
func notShort(t *testing.T) {
	t.Helper()
	if testing.Short() || redistest.Raced() {
		t.Skip("make test runs it")
	}
}

// A change of a text in which a bug is planted changes the bug as well.
func TestMutants_FitTheCode(t *testing.T) { withBugs(t) }

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
	free := make(chan struct{}, slots)
	for i := range planted.Bugs {
		m := &planted.Bugs[i]
		if !wanted(m) {
			continue
		}
		t.Run(strings.ReplaceAll(m.Name, " ", "_"), func(t *testing.T) {
			t.Parallel()
			free <- struct{}{}
			defer func() { <-free }()
			began := time.Now()
			args := append([]string{"-test.run", "^TestWorlds$", "-test.timeout", "10m", "-seed", "1", "-seeds", fmt.Sprint(within), "-stop", "-rules", m.By}, strings.Fields(m.In)...)
			out, err := planted.Wake(binary, m.Name, args...).CombinedOutput()
			switch found := foundLine.FindSubmatch(out); {
			case err == nil:
				t.Errorf("not found in %d seeds, if it has no number of its own, by the judges that should: %q", within, m.By)
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
	if m.In == planted.NoWorld {
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
