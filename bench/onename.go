package bench

import "github.com/holdfast-go/holdfast/bench/internal/contender"

// oneName asks how a lock goes round in a process.
var oneName = scenario{
	name:      "onename",
	question:  "How often, how evenly and at what price does one lock change hands among the goroutines of a process that all want it all the time?",
	rows:      goroutines(2, 16, 128, 1000),
	libraries: contender.Pick(contender.Ours, "redsync", "redsync-1ms", "redislock", "redislock-1ms", "rueidislock", "r8-pubsub", "redisson"),
	headline:  unitRate,
	shown:     []string{unitRate, unitWait + unitP50, unitWait + unitP99, unitWait + unitMax, unitJain, unitStarved, unitCommands, unitServer, unitClient, unitRoutines, unitConns, unitMemory},
	measure:   measureCrowds,
}
