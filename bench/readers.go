package bench

import (
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast/bench/internal/contender"
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
