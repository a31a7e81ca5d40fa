package bench

import "github.com/holdfast-go/holdfast/bench/internal/contender"

// recipes asks what the locks are worth that people write by hand.
var recipes = scenario{
	name:      "recipes",
	question:  "How often does a lock change hands among 16 goroutines, if it is one of those that people write by hand?",
	rows:      goroutines(1, 16),
	libraries: contender.Pick(contender.Ours, "r1-setnx", "r2-expire", "r3-getset", "r4-set", "r5-token", "r6-guard", "r7-hash", "r8-pubsub"),
	headline:  unitRate,
	shown:     []string{unitRate, unitWait + unitP50, unitWait + unitP99, unitWait + unitMax, unitJain, unitStarved, unitCommands, unitServer, unitClient},
	measure:   measureCrowds,
}
