package bench

import (
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast/bench/internal/contender"
)

// processes asks how a lock goes round among processes.
var processes = scenario{
	name:      "processes",
	question:  "How often, how evenly and at what price does one lock change hands among processes whose goroutines all want it all the time?",
	rows:      fleets(),
	libraries: contender.Pick("message", "least", contender.Ours, "redsync", "redislock", "redislock-1ms", "rueidislock", "r8-pubsub", "redisson"),
	floor:     "message",
	headline:  unitRate,
	shown:     []string{unitRate, unitWait + unitP50, unitWait + unitP99, unitWait + unitMax, unitJain, unitJainProc, unitStarved, unitCommands, unitServer, unitClient, unitRoutines, unitConns, unitMemory},
	measure:   measureCrowds,
}

func fleets() []row {
	var rows []row
	for _, n := range []int{1, 16} {
		for _, procs := range []int{2, 4, 8} {
			rows = append(rows, row{name: fmt.Sprintf("procs=%d/goroutines=%d", procs, n), n: n, procs: procs})
		}
	}
	return rows
}

// handover asks how long the lock has no holder when it goes to another process,
// one that has been waiting for a while: on one machine, where waking up is the longest part of it, and
// where Redis is a network away, and the round trips count.
var handover = scenario{
	name:     "handover",
	question: "How long does it take from Unlock in one process to the return of Lock in the other, which waits for it?",
	rows: []row{
		{name: "procs=2/waiters=1", n: 1, procs: 2, hold: 4 * time.Millisecond},
		{name: "procs=2/waiters=1/rtt=2ms", n: 1, procs: 2, hold: 4 * time.Millisecond, way: time.Millisecond},
	},
	libraries: contender.Pick("message", "grant", "least", contender.Ours, "redsync", "redislock", "redislock-1ms", "rueidislock", "r8-pubsub", "redisson"),
	floor:     "message",
	headline:  unitHandover + unitP50,
	smaller:   true,
	shown:     []string{unitHandover + unitP50, unitHandover + unitP99, unitRate, unitJain, unitCommands, unitServer, unitClient},
	measure:   measureCrowds,
}

// queue asks how evenly many wait, with work under the lock.
var queue = scenario{
	name:      "queue",
	question:  "How long does the unluckiest of 100 callers in 4 processes wait, beside the mean, when each holds the lock for a millisecond?",
	rows:      []row{{name: "procs=4/waiters=100", n: 25, procs: 4, hold: time.Millisecond}},
	libraries: contender.Pick(contender.Ours, "redsync", "redislock", "redislock-1ms", "rueidislock", "r8-pubsub", "redisson"),
	headline:  unitLongest,
	smaller:   true,
	shown:     []string{unitLongest, unitWait + unitMax, unitWait + unitP50, unitWait + unitP99, unitRate, unitJain, unitJainProc, unitStarved, unitHandover + unitP50, unitCommands, unitServer},
	stretch:   4, // several turns of all
	measure:   measureCrowds,
}
