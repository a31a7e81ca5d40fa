package bench

import (
	"context"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/bench/internal/contender"
	"github.com/holdfast-go/holdfast/bench/internal/load"
)

// uncontended asks what a lock costs without contention.
var uncontended = scenario{
	name:      "uncontended",
	question:  "What does Lock and Unlock cost one goroutine without contention?",
	rows:      []row{{name: "goroutines=1", n: 1}},
	libraries: contender.Pick("floor", contender.Ours, "holdfast-fenced", "redsync", "redislock", "rueidislock", "redisson"),
	floor:     "floor",
	headline:  unitRate,
	shown:     []string{unitRate, unitP50, unitP99, unitCommands, unitServer, unitAllocs},
	slices:    5, // the speed of a virtual machine drifts by more than libraries differ here
	measure: func(ctx context.Context, t trial) (metrics, error) {
		if t.library.Open == nil {
			return t.crowds(ctx, t.jobs(true))
		}
		c, u, err := t.open(ctx, "uncontended", holdfast.DefaultLease)
		if err != nil {
			return nil, err
		}
		defer c.Close()
		if err := settle(ctx, c, u); err != nil {
			return nil, err
		}
		return t.steady(ctx, u, "uncontended", only(c))
	},
}

// settle lets pools open their connections and stacks grow, and counts from there.
func settle(ctx context.Context, c contender.Contender, u *load.Usage) error {
	for range 100 {
		if err := contender.Pair(ctx, c, "uncontended"); err != nil {
			return err
		}
	}
	return u.Restart(ctx)
}
