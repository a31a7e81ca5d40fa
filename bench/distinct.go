package bench

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

// distinct asks how many locks a process can take when none is in another's way.
var distinct = scenario{
	name:      "distinct",
	question:  "How many pairs of Lock and Unlock does one process reach when each of its goroutines has a lock of its own?",
	rows:      goroutines(1, 16, 256, 1000, 4000),
	libraries: pick(ours, "redsync", "redislock", "rueidislock"),
	headline:  unitRate,
	shown:     []string{unitRate, unitP50, unitP99, unitCommands, unitServer},
	measure: func(ctx context.Context, t trial) (metrics, error) {
		c, u, err := t.open(ctx, "distinct", lease)
		if err != nil {
			return nil, err
		}
		defer c.Close()
		var (
			phase phases
			lat   latencies
			all   atomic.Int64 // pairs, also those before and after the window
			wg    sync.WaitGroup
			once  sync.Once
			fault error
		)
		for i := range t.n {
			name := "distinct:" + strconv.Itoa(i)
			wg.Go(func() {
				for !phase.is(stopped) {
					begun := time.Now()
					if err := pair(ctx, c, name); err != nil {
						once.Do(func() { fault = fmt.Errorf("%s: %w", name, err) })
						break
					}
					if phase.is(measuring) {
						lat.record(time.Since(begun))
					}
					all.Add(1)
				}
			})
		}
		// A slow library with many goroutines works in waves: all lock, then all unlock. A
		// window must not be shorter than a few of them.
		elapsed := phase.run(t.window,
			func() bool { return all.Load() >= int64(t.n) },
			func() bool { return lat.count() >= 2*uint64(t.n) })
		wg.Wait()
		if fault != nil {
			return nil, fault
		}
		sent, err := u.soFar(ctx)
		if err != nil {
			return nil, err
		}
		m := metrics{
			unitRate: float64(lat.count()) / elapsed.Seconds(),
			unitP50:  microseconds(lat.quantile(.5)),
			unitP99:  microseconds(lat.quantile(.99)),
		}
		sent.perPair(m, all.Load())
		return m, nil
	},
}

func goroutines(counts ...int) []row {
	var rows []row
	for _, n := range counts {
		rows = append(rows, row{"goroutines=" + strconv.Itoa(n), n})
	}
	return rows
}

// phases leads the goroutines of a scenario through warm-up, measurement and end.
// Rates are taken from the measurement only. Commands are counted from before the
// first goroutine starts until after the last has ended, and divided by all that was
// done meanwhile: in between there is no moment at which both counts stand still.
type phases struct{ now atomic.Int32 }

const (
	warming int32 = iota
	measuring
	stopped
)

func (p *phases) is(phase int32) bool { return p.now.Load() == phase }

// run goes through the phases and returns how long the measurement took: a window,
// or longer if enough has not been reached by then.
func (p *phases) run(window time.Duration, warm, enough func() bool) time.Duration {
	wait(window/5, warm)
	begun := time.Now()
	p.now.Store(measuring)
	wait(window, enough)
	p.now.Store(stopped)
	return time.Since(begun)
}

// wait waits for d, and then for done, which has patience for two seconds.
func wait(d time.Duration, done func() bool) {
	time.Sleep(d)
	for end := time.Now().Add(2 * time.Second); !done() && time.Now().Before(end); {
		time.Sleep(10 * time.Millisecond)
	}
}
