package sim

import (
	"math"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"
)

// leastSame is the part of the seeds that must repeat their whole trace.
const leastSame = 0.3

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
		seeds = 16
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
	if float64(same) < leastSame*float64(seeds) {
		t.Errorf("fewer than %v do", leastSame)
	}
}
