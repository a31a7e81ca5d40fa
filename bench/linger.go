package bench

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/bench/internal/contender"
)

// linger asks where it pays that a process keeps a lock after Unlock, and where not: two clients, in one process and each with
// connections and locks of its own, take one lock one after the other. A die decides whose turn it is. So no caller
// waits for another one, and each call of the other client finds a lock that is free, or that is kept.
var linger = scenario{
	name:      "linger",
	question:  "What is it worth that a process keeps a lock for its next caller, when a share of the calls comes from another process?",
	rows:      elsewhere(0, .01, .1, .5),
	libraries: contender.Pick(contender.Ours, contender.Lingering, "redsync", "redislock", "rueidislock"),
	us:        contender.Lingering,
	headline:  unitRate,
	shown:     []string{unitRate, unitP50, unitP99, unitCommands, unitServer, unitAllocs},
	measure: func(ctx context.Context, t trial) (metrics, error) {
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
		dice := rand.New(rand.NewPCG(1, 1))
		take := func() (took time.Duration, err error) {
			c := mine
			if dice.Float64() < t.others {
				c = other
			}
			begun := time.Now()
			err = contender.Pair(ctx, c, "linger")
			return time.Since(begun), err
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
		lat := new(latencies)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		begun := time.Now()
		for time.Since(begun) < t.window {
			took, err := take()
			if err != nil {
				return nil, err
			}
			lat.Record(took)
		}
		elapsed := time.Since(begun)
		runtime.ReadMemStats(&after)
		m, err := lat.metrics(ctx, u)
		if err != nil {
			return nil, err
		}
		m[unitRate] = float64(lat.Count()) / elapsed.Seconds()
		m[unitAllocs] = float64(after.Mallocs-before.Mallocs) / float64(lat.Count())
		return m, nil
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
