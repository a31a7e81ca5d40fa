package bench

import (
	"fmt"

	"github.com/holdfast-go/holdfast/bench/internal/contender"
)

// fair asks what a queue costs that serves callers in the order they came, over all
// processes, and whether the price depends on its length. Holdfast's Mutex, which is no
// fair lock, is there to compare with.
var fair = scenario{
	name:      "fair",
	question:  "What does one hand-over of a fair lock cost when 10, 1,000 and 10,000 callers of two processes stand in its queue?",
	rows:      queues(10, 1000, 10_000),
	libraries: append(contender.Pick(contender.Ours), contender.OfKind(contender.InOrder)...),
	us:        "holdfast-fair",
	headline:  unitServer,
	smaller:   true,
	shown:     []string{unitServer, unitCommands, unitRate, unitWait + unitP50, unitWait + unitMax, unitJain, unitJainProc, unitClient, unitMemory},
	stretch:   4,
	measure:   measureCrowds,
}

func queues(lengths ...int) []row {
	var rows []row
	for _, n := range lengths {
		rows = append(rows, row{name: fmt.Sprintf("procs=2/waiters=%d", n), n: n / 2, procs: 2, large: n > 1000})
	}
	return rows
}
