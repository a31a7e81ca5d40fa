package bench

import (
	"context"
	"fmt"
	"math/rand/v2"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/bench/internal/contender"
)

// linger asks where it pays that a process keeps a lock after Unlock, and where not: two clients, in one process and each with
// connections and locks of its own, take one lock one after the other. A die decides whose turn it is, or they take turns. So no caller
// waits for another one, and each call of the other client finds a lock that is free, or that is kept. In the last row two processes
// want the lock all the time.
var linger = scenario{
	name:      "linger",
	question:  "What is it worth that a process keeps a lock for its next caller, when a share of the calls comes from another process?",
	rows:      append(elsewhere(0, .01, .1, .5), row{name: "turns=strict", n: 1, turns: true}, row{name: "procs=2/goroutines=1", n: 1, procs: 2}),
	libraries: contender.Pick(contender.Ours, contender.Lingering, "redsync", "redislock", "rueidislock"),
	us:        contender.Lingering,
	headline:  unitRate,
	shown:     []string{unitRate, unitP50, unitP99, unitCommands, unitServer, unitAllocs, unitJain},
	measure: func(ctx context.Context, t trial) (metrics, error) {
		if t.procs > 0 {
			return t.crowds(ctx, t.jobs(false))
		}
		mine, u, err := t.open(ctx, "linger", holdfast.DefaultLease)
		if err != nil {
			return nil, err
		}
		defer mine.Close()
		other, err := t.library.Open(t.server.Address(), holdfast.DefaultLease)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", t.library.Name, err)
		}
		defer other.Close()
		n, dice := 0, rand.New(rand.NewPCG(1, 1))
		pick := func() contender.Contender {
			if n++; t.turns && n%2 == 0 || dice.Float64() < t.others {
				return other
			}
			return mine
		}
		for range 100 { // connections open, and both have had the lock
			if err := contender.Pair(ctx, other, "linger"); err != nil {
				return nil, err
			}
			if err := contender.Pair(ctx, mine, "linger"); err != nil {
				return nil, err
			}
		}
		if err := u.Restart(ctx); err != nil {
			return nil, err
		}
		return t.steady(ctx, u, "linger", pick)
	},
}

// elsewhere are rows by the share of calls that come from another process.
func elsewhere(all ...float64) (rows []row) {
	for _, s := range all {
		rows = append(rows, row{name: "elsewhere=" + percent(s), n: 1, others: s})
	}
	return rows
}

func percent(share float64) string { return fmt.Sprintf("%.0f%%", 100*share) }
