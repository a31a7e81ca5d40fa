package bench

import (
	"context"
	"strconv"

	"github.com/holdfast-go/holdfast/bench/internal/contender"
)

// distinct asks how many locks a process can take when none is in another's way.
var distinct = scenario{
	name:      "distinct",
	question:  "How many pairs of Lock and Unlock does one process reach when each of its goroutines has a lock of its own?",
	rows:      goroutines(1, 16, 256, 1000, 4000),
	libraries: contender.Pick(contender.Ours, "redsync", "redislock", "rueidislock", "redisson"),
	headline:  unitRate,
	shown:     []string{unitRate, unitWait + unitP50, unitWait + unitP99, unitCommands, unitServer, unitClient, unitRoutines, unitConns, unitMemory},
	measure: func(ctx context.Context, t trial) (metrics, error) {
		return t.crowds(ctx, t.jobs(true))
	},
}

func goroutines(counts ...int) []row {
	var rows []row
	for _, n := range counts {
		rows = append(rows, row{name: "goroutines=" + strconv.Itoa(n), n: n, large: n >= 1000})
	}
	return rows
}
