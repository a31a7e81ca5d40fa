package sim

import (
	"encoding/json"
	"flag"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/internal/planted"
)

var (
	repeatFlag = flag.Float64("repeat", 0.3, "how many of the seeds must repeat their whole trace; 1: all")
	exactFlag  = flag.Bool("exact", false, "TestWorlds_Exact builds the tests, and runs worlds in them, with a Go runtime that draws nothing but from the world")
)

// enough is more memory than a world takes without a collection.
const enough = 2 << 30

// alone is for tests that run one world at a time: no processor but one runs goroutines, and a collection comes only between two worlds.
func alone(t *testing.T) {
	processors, percent, limit := runtime.GOMAXPROCS(1), debug.SetGCPercent(-1), debug.SetMemoryLimit(-1)
	debug.SetMemoryLimit(min(limit, enough))
	t.Cleanup(func() {
		runtime.GOMAXPROCS(processors)
		debug.SetGCPercent(percent)
		debug.SetMemoryLimit(limit)
	})
}

// One seed, one world: the plan and the network's delays are the same whenever a seed is run, and mostly the whole trace is. What is left is the
// chance of the Go runtime, between timers of one moment, cases of a select and entries of a map.
func TestWorlds_Repeat(t *testing.T) {
	notShort(t)
	alone(t)
	seeds, same := *seedsFlag, 0
	if seeds == 0 {
		seeds = 24
	}
	trace := func(seed uint64) string { return inBubble(t, draw(seed)).Trace(math.MaxInt64) }
	for i := range seeds {
		seed := max(*seedFlag, 1) + uint64(i)
		a, b := trace(seed), trace(seed)
		if a == b {
			same++
			continue
		}
		x, y, n := strings.Split(a, "\n"), strings.Split(b, "\n"), 0
		for n < min(len(x), len(y))-1 && x[n] == y[n] {
			n++
		}
		t.Logf("seed %d, %s, differs in line %d of %d:\n%s\n%s", seed, draw(seed).Shape, n+1, len(x), x[n], y[n])
	}
	t.Logf("%d of %d seeds repeat", same, seeds)
	if float64(same) < *repeatFlag*float64(seeds) {
		t.Errorf("fewer than %v do", *repeatFlag)
	}
}

// ofTheWorld are the places where the Go runtime draws what a world can show.
var ofTheWorld = []planted.Edit{
	edit("rand.go", "func rand() uint64 {\n", "func rand() uint64 {\n\tif gp := getg(); gp.bubble != nil {\n\t\treturn gp.bubble.draw()\n\t}\n"),
	edit("rand.go", "\n// randn is like", `
//go:nosplit
func (b *synctestBubble) draw() uint64 {
	b.drawn += 0x9e3779b97f4a7c15
	z := b.drawn
	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9
	z = (z ^ (z >> 27)) * 0x94d049bb133111eb
	return z ^ (z >> 31)
}

// randn is like`),
	edit("synctest.go", "type synctestBubble struct {\n", "type synctestBubble struct {\n\tdrawn uint64\n"),
	edit("time.go", "t.rand = cheaprand()\n", "t.rand = cheaprand()\n\t\t\tif gp := getg(); gp.bubble != nil {\n\t\t\t\tt.rand = uint32(gp.bubble.draw())\n\t\t\t}\n"),
	edit("select.go", "j := cheaprandn(uint32(norder + 1))\n", "j := cheaprandn(uint32(norder + 1))\n\t\tif gp := getg(); gp.bubble != nil {\n\t\t\tj = uint32(gp.bubble.draw() % uint64(norder+1))\n\t\t}\n"),
}

// TestWorlds_Exact runs worlds whose chance is all their own, but for where memory lies: of a hundred, some 95 repeat. With -exact it builds the
// Go runtime and all else anew, for a minute; what it runs are TestWorlds and TestWorlds_Repeat, with the flags that it is given.
func TestWorlds_Exact(t *testing.T) {
	if !*exactFlag {
		t.Skip("with -exact only")
	}
	sources, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		t.Fatal(err)
	}
	o := planted.New(t, root)
	for _, e := range ofTheWorld {
		o.Replace(filepath.Join(strings.TrimSpace(string(sources)), "src", "runtime", e.File), e.Old, e.New)
	}
	dir := filepath.Join(os.TempDir(), "holdfast-exact") // the same each time: the compiler names it
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	replaced := map[string]string{}
	for path, text := range o.Files {
		replaced[path] = filepath.Join(dir, filepath.Base(path))
		if err := os.WriteFile(replaced[path], []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	list, _ := json.Marshal(map[string]any{"Replace": replaced})
	if err := os.WriteFile(filepath.Join(dir, "overlay.json"), list, 0o600); err != nil {
		t.Fatal(err)
	}
	binary := filepath.Join(t.TempDir(), "sim.test")
	if out, err := exec.Command("go", "test", "-c", "-overlay", filepath.Join(dir, "overlay.json"), "-o", binary, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	args := []string{"-test.run", "^TestWorlds(_Repeat)?$", "-test.v", "-test.memprofilerate", "0"}
	flag.Visit(func(f *flag.Flag) {
		if !strings.HasPrefix(f.Name, "test.") && f.Name != "exact" {
			args = append(args, "-"+f.Name, f.Value.String())
		}
	})
	cmd := exec.Command(binary, args...)
	cmd.Env = append(os.Environ(), "GODEBUG=asyncpreemptoff=1")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("%v", err)
	}
	t.Logf("%s", out)
}
