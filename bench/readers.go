package bench

import (
	"context"
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast/bench/internal/contender"
	"github.com/holdfast-go/holdfast/bench/internal/load"
)

// readers asks what it is worth that readers do not exclude each other. A library
// without read locks takes part with the lock that it has.
var readers = scenario{
	name:      "readers",
	question:  "How many sections of a millisecond do 16 callers in 2 processes get through, when most of them only read?",
	rows:      shares(.99, .90, .50),
	libraries: append(contender.Pick(contender.Ours, "rueidislock", "redisson"), contender.OfKind(contender.Shared)...),
	us:        "holdfast-rw",
	headline:  unitRate,
	shown:     []string{unitRate, unitReads, unitWrites, "read-" + unitWait + unitP50, "read-" + unitWait + unitP99, unitWait + unitP50, unitWait + unitP99, unitWait + unitMax, unitJain, unitCommands, unitServer},
	measure:   measureCrowds,
}

func shares(reads ...float64) []row {
	var rows []row
	for _, r := range reads {
		rows = append(rows, row{
			name: fmt.Sprintf("procs=2/goroutines=8/reads=%.0f", 100*r), n: 8, procs: 2, hold: time.Millisecond, reads: r,
		})
	}
	return rows
}

// writer asks whether readers who come and go keep a writer out.
var writer = scenario{
	name:      "writer",
	question:  "How long does a writer wait that is alone against 8 readers in 2 other processes, who take the lock again and again for a millisecond?",
	rows:      []row{{name: "procs=3/readers=8", n: 4, procs: 3, hold: time.Millisecond}},
	libraries: append(contender.Pick(contender.Ours, "rueidislock", "redisson"), contender.OfKind(contender.Shared)...),
	us:        "holdfast-rw",
	headline:  unitWriteMax,
	smaller:   true,
	shown:     []string{unitWriteMax, unitWait + unitP50, unitWait + unitP99, unitWrites, unitReads, "read-" + unitWait + unitP99, unitCommands, unitServer},
	measure: func(ctx context.Context, t trial) (metrics, error) {
		jobs := []load.Job{{Process: 1, Callers: 1, Hold: t.hold}}
		for i := 1; i < t.procs; i++ {
			jobs = append(jobs, load.Job{Process: int64(i) + 1, Callers: t.n, First: 1 + (i-1)*t.n, Hold: t.hold, Reads: 1})
		}
		return t.crowds(ctx, jobs)
	},
}
