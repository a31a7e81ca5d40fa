package bench

import (
	"context"
	"fmt"
	"runtime"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/bench/internal/contender"
)

// reentry asks what it costs an owner to lock again what it holds. Of the others only Redisson
// has it, with a round trip each.
var reentry = scenario{
	name:      "reentry",
	question:  "What does it cost an owner to lock again, and unlock, what it holds already?",
	rows:      []row{{name: "goroutines=1", n: 1}},
	libraries: contender.Pick(contender.Ours),
	headline:  unitNanoseconds,
	smaller:   true,
	shown:     []string{unitNanoseconds, unitCommands, unitAllocs},
	measure: func(ctx context.Context, t trial) (metrics, error) {
		c, u, err := t.open(ctx, "reentry", holdfast.DefaultLease)
		if err != nil {
			return nil, err
		}
		defer c.Close()
		if err := settle(ctx, c, u); err != nil {
			return nil, err
		}
		var before, after runtime.MemStats
		var begun time.Time
		n := 0
		elapsed := func() time.Duration { return time.Since(begun) }
		err = reenter(ctx, c, func() bool {
			if n == 0 {
				runtime.ReadMemStats(&before)
				begun = time.Now()
			}
			n++
			return n%1000 != 0 || elapsed() < t.window // the clock would be a tenth of it
		})
		took := elapsed()
		runtime.ReadMemStats(&after)
		if err != nil {
			return nil, err
		}
		sent, err := u.SoFar(ctx)
		if err != nil {
			return nil, err
		}
		ops := float64(n - 1)
		return metrics{
			unitNanoseconds: float64(took) / ops,
			unitCommands:    float64(sent.Commands-2) / ops, // the two of the lock itself
			unitAllocs:      float64(after.Mallocs-before.Mallocs) / ops,
		}, nil
	},
}

const unitNanoseconds = "ns/op"

// reenter locks once and then again and again, for as long as more says.
func reenter(ctx context.Context, c contender.Contender, more func() bool) error {
	m := c.(*contender.Holdfast).Manager.Mutex("reentry")
	outer, err := m.Lock(ctx)
	if err != nil {
		return err
	}
	inside := outer.Context(ctx)
	for more() {
		var inner *holdfast.Lease
		if inner, err = m.Lock(inside); err != nil {
			return fmt.Errorf("enter again: %w", err)
		}
		if err = inner.Unlock(ctx); err != nil {
			return fmt.Errorf("leave: %w", err)
		}
	}
	return outer.Unlock(ctx)
}
