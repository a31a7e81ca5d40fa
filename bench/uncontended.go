package bench

import (
	"context"
	"runtime"
	"time"

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

// steady has a goroutine lock and unlock one name for a window. Before each pair it picks a client.
func (t trial) steady(ctx context.Context, u *load.Usage, name string, pick func() contender.Contender) (metrics, error) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	begun := time.Now()
	lat, err := pairs(ctx, name, pick, func() bool { return time.Since(begun) < t.window })
	elapsed := time.Since(begun)
	runtime.ReadMemStats(&after)
	if err != nil {
		return nil, err
	}
	m, err := lat.metrics(ctx, u)
	if err != nil {
		return nil, err
	}
	m[unitRate] = float64(lat.Count()) / elapsed.Seconds()
	m[unitAllocs] = float64(after.Mallocs-before.Mallocs) / float64(lat.Count())
	return m, nil
}

// only picks the same client each time.
func only(c contender.Contender) func() contender.Contender {
	return func() contender.Contender { return c }
}

// latencies are the durations of pairs of Lock and Unlock.
type latencies struct{ load.Histogram }

// pairs locks and unlocks one name for as long as more says.
func pairs(ctx context.Context, name string, pick func() contender.Contender, more func() bool) (*latencies, error) {
	lat := new(latencies)
	for more() {
		c := pick()
		begun := time.Now()
		if err := contender.Pair(ctx, c, name); err != nil {
			return nil, err
		}
		lat.Record(time.Since(begun))
	}
	return lat, nil
}

func (l *latencies) metrics(ctx context.Context, u *load.Usage) (metrics, error) {
	sent, err := u.SoFar(ctx)
	if err != nil {
		return nil, err
	}
	m := metrics{
		unitP50: microseconds(l.Quantile(.5)),
		unitP99: microseconds(l.Quantile(.99)),
	}
	m.perPair(sent, int64(l.Count()))
	return m, nil
}
