package bench

import (
	"time"

	"github.com/holdfast-go/holdfast/bench/internal/load"
	"github.com/holdfast-go/holdfast/bench/internal/report"
)

// metrics are what was measured, by unit; as in package testing, a unit is also the
// metric's name.
type metrics map[string]float64

// Units that scenarios share.
const (
	unitRate     = "pairs/s" // Lock and Unlock
	unitP50      = "p50-µs"
	unitP99      = "p99-µs"
	unitMax      = "max-ms"
	unitCommands = "redis-cmds/op"
	unitServer   = "redis-cpu-µs/op"
	unitAllocs   = "allocs/op"
	unitClient   = "client-cpu-µs/op"
	unitWait     = "wait-"     // before a quantile: of Lock alone
	unitJain     = report.Jain // over the goroutines' numbers of grants
	unitJainProc = report.JainProcs
	unitStarved  = "starved" // goroutines without a grant in the window
	unitOverlaps = report.Overlaps
	unitConns    = "conns"
	unitMemory   = "memory-MB"
	unitHandover = "handover-" // from Unlock in one process to the return of Lock in another
	unitLongest  = "longest/mean"
	unitReads    = "reads/s"
	unitWrites   = "writes/s"
)

// perPair adds what each of n pairs took.
func (m metrics) perPair(sent load.Tally, n int64) {
	m[unitCommands] = float64(sent.Commands) / float64(n)
	m[unitServer] = microseconds(sent.CPU) / float64(n)
}

// quantiles adds those of h, if it has any.
func (m metrics) quantiles(prefix string, h *load.Histogram) {
	if h.Count() > 0 {
		m[prefix+unitP50], m[prefix+unitP99] = microseconds(h.Quantile(.5)), microseconds(h.Quantile(.99))
	}
}

func microseconds(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// jain is Jain's fairness index of shares: 1 if all are equal, 1/n if one has all.
func jain(shares []int64) float64 {
	var sum, squares float64
	for _, s := range shares {
		sum += float64(s)
		squares += float64(s) * float64(s)
	}
	if squares == 0 {
		return 0
	}
	return sum * sum / (float64(len(shares)) * squares)
}
