package bench

import (
	"context"
	"runtime"
	"time"

	"github.com/holdfast-go/holdfast/bench/internal/contender"
	"github.com/holdfast-go/holdfast/bench/internal/load"
)

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
