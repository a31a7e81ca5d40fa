package bench

import (
	"context"
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast/bench/internal/contender"
	"github.com/holdfast-go/holdfast/bench/internal/load"
)

// measure answers the question once. It opens contenders through t and closes them.
type measure func(ctx context.Context, t trial) (metrics, error)

// trial is one measurement: a library under a load, on an empty server.
type trial struct {
	server  *load.Server
	library contender.Library
	row
	window time.Duration // how long to watch a steady state
}

// brief reports whether figures may be rough, or do not matter at all.
func (t trial) brief() bool { return t.window < briefWindow }

// fits reports whether the library can do what the row asks for.
func (t trial) fits() bool { return t.n == 1 || !t.library.Single }

// tooDear reports whether a brief run leaves the trial out: large rows, and more virtual
// machines than start in a moment.
func (t trial) tooDear() bool {
	return t.brief() && (t.large || t.library.Open == nil && t.procs > 4)
}

const briefWindow = 300 * time.Millisecond

// open empties the server, opens a contender and has it take the named lock once, so
// that its scripts are known to the server. It returns a count of what clients cost from there on.
func (t trial) open(ctx context.Context, name string, lease time.Duration) (contender.Contender, *load.Usage, error) {
	if err := t.server.Reset(ctx); err != nil {
		return nil, nil, err
	}
	c, err := t.library.Open(t.server.Address(), lease)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", t.library.Name, err)
	}
	if err := contender.Pair(ctx, c, name); err != nil {
		c.Close()
		return nil, nil, err
	}
	u, err := t.usage(ctx)
	if err != nil {
		c.Close()
	}
	return c, u, err
}

func (t trial) usage(ctx context.Context) (*load.Usage, error) {
	return t.server.Usage(ctx, t.library.Direct)
}
