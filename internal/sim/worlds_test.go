package sim

import (
	"flag"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

var (
	seedFlag  = flag.Uint64("seed", 0, "the first seed")
	seedsFlag = flag.Int("seeds", 0, "how many seeds; 0: some for each shape, or one if -seed is given")
	traceFlag = flag.Duration("trace", time.Second, "how much of a red world's trace is printed")
)

// inBubble runs a plan in fake time.
func inBubble(t *testing.T, plan *Plan) (r *Result) {
	synctest.Test(t, func(t *testing.T) { r = Run(plan) })
	return r
}

func (r *Result) report(last time.Duration) string {
	var b strings.Builder
	for _, v := range r.Found {
		fmt.Fprintf(&b, "%v\n", v)
	}
	fmt.Fprintf(&b, "\n%s\n", r.Trace(last))
	for _, v := range r.Found {
		fmt.Fprintf(&b, "%v\n", v)
	}
	fmt.Fprintf(&b, "again: go test ./internal/sim -run 'TestWorlds$' -args -seed %d\n", r.Plan.Seed)
	return b.String()
}

func TestWorlds(t *testing.T) {
	seeds := *seedsFlag
	if seeds == 0 {
		if seeds = 200; *seedFlag > 0 {
			seeds = 1
		}
	}
	var mu sync.Mutex
	var sum Stats
	red := map[string]int{}
	began := time.Now()
	for i := range seeds {
		seed := *seedFlag + uint64(i)
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			r := inBubble(t, Draw(seed))
			mu.Lock()
			defer mu.Unlock()
			sum.Commands += r.Stats.Commands
			sum.Calls += r.Stats.Calls
			sum.Grants += r.Stats.Grants
			sum.Faults += r.Stats.Faults
			sum.Simulated += r.Stats.Simulated
			if len(r.Found) > 0 {
				red[r.Found[0].Rule]++
				t.Errorf("seed %d, %s: %s", seed, r.Plan.Shape, r.report(*traceFlag))
			}
		})
	}
	took := time.Since(began)
	t.Logf("%d worlds, %v simulated, %d calls, %d grants, %d commands, %d faults in %v; red %v", seeds, sum.Simulated.Round(time.Second), sum.Calls, sum.Grants, sum.Commands, sum.Faults, took.Round(time.Millisecond), red)
}
