package sim

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/internal/judge"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

var (
	seedFlag  = flag.Uint64("seed", 0, "the first seed")
	seedsFlag = flag.Int("seeds", 0, "how many seeds; 0: some for each shape, or one if -seed is given")
	shapeFlag = flag.String("shape", "", "the shape of all worlds; empty: that of the seed")
	rulesFlag = flag.String("rules", "", "a world is red only by the judges whose names this matches")
	stopFlag  = flag.Bool("stop", false, "stop at the first red world")
	moreFlag  = flag.String("more", "", "what is added to each world in which it can be, with commas between: see additions")
	traceFlag = flag.Duration("trace", time.Second, "how much of a red world's trace is printed")
)

func init() { flag.Uint64Var(&mostEvents, "events", mostEvents, "a world with more events runs away") }

// unitSeeds is how many worlds run on each change.
const unitSeeds = 30

// stuckAfter is how long a world may take on a busy machine. One that takes longer repeats something that is no event, while its clock stands.
const stuckAfter = 5 * time.Minute

// inBubble runs a plan in fake time. What the world before has left is collected first.
func inBubble(t *testing.T, plan *Plan) (r *Result) {
	runtime.GC()
	stuck := time.AfterFunc(stuckAfter, func() {
		debug.SetTraceback("all")
		panic(fmt.Sprintf("seed %d, %s: does not end within %v", plan.Seed, plan.Shape, stuckAfter))
	})
	defer stuck.Stop()
	synctest.Test(t, func(t *testing.T) { r = Run(plan) })
	return r
}

// additions are what -more can add to a plan.
var additions = map[string]func(*Plan){
	"leavers":   (*Plan).addLeavers,   // more callers leave, and come back before answers and grants have come
	"lingerers": (*Plan).addLingerers, // processes keep locks after Unlock
	"extras": func(p *Plan) { // tickets, values, and holders that step aside
		p.addTickets(true)
		p.addWanted(true)
		p.addValues(true)
	},
	"stalls": func(p *Plan) { // every second fault is a process that stands still
		for i := 0; i < len(p.Faults); i += 2 {
			p.Faults[i].Kind = stalls[i/2%2].name
			p.Faults[i].For *= 2
		}
	},
}

// draw draws the plan of a seed, as the flags want it.
func draw(seed uint64) *Plan {
	p := Draw(seed)
	if shape := Shape(*shapeFlag); shape != "" {
		if !slices.Contains(Shapes, shape) && shape != Crowd && shape != Elections && shape != Semaphores {
			panic("no such shape")
		}
		p = DrawShape(seed, shape)
	}
	for _, name := range strings.FieldsFunc(*moreFlag, func(r rune) bool { return r == ',' }) {
		additions[name](p)
	}
	return p
}

// report is what is printed of a red world.
func (r *Result) report(last time.Duration) string {
	var b strings.Builder
	fmt.Fprintf(&b, "seed %d, %s\n", r.Plan.Seed, r.Plan.Shape)
	list := func() {
		for _, v := range r.Found {
			fmt.Fprintf(&b, "%v\n", v)
		}
	}
	list()
	fmt.Fprintf(&b, "\n%s\n", r.Trace(last))
	list()
	fmt.Fprintf(&b, "again: go test ./internal/sim -run 'TestWorlds$' -args -seed %d -shape '%s' -more '%s' -trace 5s\n", r.Plan.Seed, *shapeFlag, *moreFlag)
	return b.String()
}

// tally is what the worlds of a test came to.
type tally struct {
	mu          sync.Mutex // guards the following
	worlds, red int
	sum         Stats
}

// one runs a world. It reports whether it is green.
func (a *tally) one(t *testing.T, n int, plan *Plan) bool {
	r := inBubble(t, plan)
	r.Found = slices.DeleteFunc(r.Found, func(v judge.Violation) bool { return !regexp.MustCompile(*rulesFlag).MatchString(v.Rule) })
	a.mu.Lock()
	defer a.mu.Unlock()
	a.worlds++
	a.sum.add(&r.Stats)
	if len(r.Found) > 0 {
		a.red++
		t.Errorf("red: world %d: %v\n%s", n, r.Found[0], r.report(*traceFlag))
	}
	return len(r.Found) == 0
}

// The library under everything at once, in as many worlds as there are seeds: no judge finds anything.
func TestWorlds(t *testing.T) {
	first, seeds := *seedFlag, *seedsFlag
	switch {
	case seeds == 0 && *seedFlag > 0:
		seeds = 1
	case seeds == 0 && redistest.Raced(): // the race detector makes a world take eight times as long
		seeds = unitSeeds / 3
	case seeds == 0 && testing.Short():
		seeds = unitSeeds
	case seeds == 0: // make test runs those before as well
		first, seeds = unitSeeds, 70
	}
	groups := min(runtime.GOMAXPROCS(0), seeds, 4)
	if *stopFlag {
		groups = 1
	}
	if groups == 1 {
		alone(t)
	}
	var all tally
	began := time.Now()
	t.Cleanup(func() {
		took := time.Since(began)
		t.Logf("%d worlds, %d red, in %v: %.1f hours simulated, %.0f × real time; %d calls, %.0f a second; %d grants, %d commands, %d faults; %d tickets attached, %d stood aside",
			all.worlds, all.red, took.Round(time.Millisecond), all.sum.Simulated.Hours(), all.sum.Simulated.Seconds()/took.Seconds(),
			all.sum.Calls, float64(all.sum.Calls)/took.Seconds(), all.sum.Grants, all.sum.Commands, all.sum.Faults, all.sum.Attached, all.sum.StoodAside)
		if all.worlds >= unitSeeds && *shapeFlag == "" && min(all.sum.Attached, all.sum.StoodAside) < all.worlds/4 {
			t.Error("too few tickets were attached, or holders stood aside")
		}
	})
	for g := range groups {
		t.Run(fmt.Sprint("group ", g), func(t *testing.T) {
			t.Parallel()
			for i := g; i < seeds; i += groups {
				if !all.one(t, i+1, draw(first+uint64(i))) && *stopFlag {
					return
				}
			}
		})
	}
}

// A world that runs away ends with its seed, before it has taken all memory.
func TestWorlds_ThatRunAwayAreStopped(t *testing.T) {
	out, err := exec.Command(os.Args[0], "-test.run", "^TestWorlds$", "-seed", "3", "-events", "1000").CombinedOutput()
	if want := fmt.Sprintf("panic: seed 3, %s: runs away, with 1001 events and ", draw(3).Shape); err == nil || !bytes.Contains(out, []byte(want)) {
		t.Errorf("%v, without %q:\n%s", err, want, out)
	}
}

// Requests for many locks go as one command, and each has its own verdict.
func TestWorlds_OfCrowds(t *testing.T) {
	if merged := worldsOf(t, Crowd, 10, 10).Merged; merged < 100 {
		t.Errorf("%d commands were merged", merged)
	}
}

// One leads, its record is its own, and observers see each change: no judge finds anything, among faults of all kinds.
func TestWorlds_OfElections(t *testing.T) { worldsOf(t, Elections, 10, 20) }

// Semaphores: no more permits are held than there are, none is lost or made, and no caller is forgotten.
func TestWorlds_OfSemaphores(t *testing.T) { worldsOf(t, Semaphores, 15, 20) }

// worldsOf runs worlds of a shape that seeds do not have: the first with -short, and more, other ones without.
func worldsOf(t *testing.T, shape Shape, short, more int) Stats {
	first, seeds := short, more
	if testing.Short() || redistest.Raced() {
		first, seeds = 0, short
	}
	var all tally
	for seed := first; seed < first+seeds; seed++ {
		all.one(t, seed, DrawShape(uint64(seed), shape))
	}
	t.Logf("%d worlds, %d red; %d grants, %d commands, of which %d were for many", all.worlds, all.red, all.sum.Grants, all.sum.Commands, all.sum.Merged)
	if all.sum.Grants < 10*seeds {
		t.Errorf("%d grants", all.sum.Grants)
	}
	return all.sum
}

func (s *Stats) add(o *Stats) {
	s.Commands += o.Commands
	s.Merged += o.Merged
	s.Calls += o.Calls
	s.Grants += o.Grants
	s.Faults += o.Faults
	s.Attached += o.Attached
	s.StoodAside += o.StoodAside
	s.Simulated += o.Simulated
}
