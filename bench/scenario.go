package bench

import (
	"cmp"
	"context"
	"fmt"
	"time"
)

// scenarios are all there are, in the order of the report.
var scenarios = []scenario{
	floors, uncontended, distinct, oneName, processes, handover, queue, modes, fair, readers, writer,
	recipes, reentry, held, parked, parkedAsync,
}

// scenario is one question that is put to several libraries under several loads.
type scenario struct {
	name      string // in file names and results
	question  string
	rows      []row
	libraries []library
	us        string   // the library that is compared with the others; empty: Holdfast's Mutex
	headline  string   // the unit of the metric that decides
	smaller   bool     // whether less of it is better
	shown     []string // units in tables
	once      bool     // counts and sizes, which do not vary: one round tells them
	slices    int      // windows are cut into so many, where small differences matter
	stretch   int      // windows are so many times as long
	measure   measure
}

// ours is the name of the library that is compared with the others.
func (s scenario) ours() string { return cmp.Or(s.us, ours) }

// row is one load.
type row struct {
	name  string // for a person and for benchstat: key=value
	n     int    // goroutines of each process, locks or waiters
	procs int    // processes; 0: this one
	hold  time.Duration
	reads float64 // the share of read locks
	large bool    // left out of brief runs
}

// measure answers the question once. It opens contenders through t and closes them.
type measure func(ctx context.Context, t trial) (metrics, error)

// trial is one measurement: a library under a load, on an empty server.
type trial struct {
	server  *Server
	library library
	row
	window time.Duration // how long to watch a steady state
}

// brief reports whether figures may be rough, or do not matter at all.
func (t trial) brief() bool { return t.window < briefWindow }

// tooDear reports whether a brief run leaves the trial out: large rows, and more virtual
// machines than start in a moment.
func (t trial) tooDear() bool {
	return t.brief() && (t.large || t.library.open == nil && t.procs > 4)
}

const briefWindow = 300 * time.Millisecond

// metrics are what was measured, by unit; as in package testing, a unit is also the
// metric's name.
type metrics map[string]float64

// Units that scenarios share.
const (
	unitRate     = "pairs/s" // Lock and Unlock
	unitP50      = "p50-µs"
	unitP99      = "p99-µs"
	unitMax      = "max-ms"
	unitCommands = "redis-cmds/op"
	unitServer   = "redis-cpu-µs/op"
	unitAllocs   = "allocs/op"
	unitClient   = "client-cpu-µs/op"
	unitWait     = "wait-" // before a quantile: of Lock alone
	unitJain     = "jain"  // over the goroutines' numbers of grants
	unitJainProc = "jain-procs"
	unitStarved  = "starved" // goroutines without a grant in the window
	unitOverlaps = "violations"
	unitConns    = "conns"
	unitMemory   = "memory-MB"
	unitHandover = "handover-" // from Unlock in one process to the return of Lock in another
	unitLongest  = "longest/mean"
	unitReads    = "reads/s"
	unitWrites   = "writes/s"
	unitWriteMax = "write-wait-max-ms"
)

// open empties the server, opens a contender and has it take the named lock once, so
// that its scripts are known to the server. It returns a count of what clients cost from there on.
func (t trial) open(ctx context.Context, name string, lease time.Duration) (contender, *usage, error) {
	if err := t.server.reset(ctx); err != nil {
		return nil, nil, err
	}
	c, err := t.library.open(t.server.address, lease)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", t.library.name, err)
	}
	if err := pair(ctx, c, name); err != nil {
		c.Close()
		return nil, nil, err
	}
	u, err := t.usage(ctx)
	if err != nil {
		c.Close()
	}
	return c, u, err
}

func (t trial) usage(ctx context.Context) (*usage, error) {
	u := &usage{counter: commandCounter{t.server, t.library.direct}}
	return u, u.restart(ctx)
}

// usage is what clients have cost since a moment.
type usage struct {
	counter commandCounter
	from    tally
}

func (u *usage) restart(ctx context.Context) (err error) {
	u.from, err = u.counter.now(ctx)
	return err
}

func (u *usage) soFar(ctx context.Context) (tally, error) {
	now, err := u.counter.now(ctx)
	return tally{now.commands - u.from.commands, now.cpu - u.from.cpu}, err
}

// perPair adds to m what each of n pairs took.
func (t tally) perPair(m metrics, n int64) {
	m[unitCommands] = float64(t.commands) / float64(n)
	m[unitServer] = microseconds(t.cpu) / float64(n)
}

// pair locks and unlocks once.
func pair(ctx context.Context, c contender, name string) error {
	unlock, err := c.Lock(ctx, name)
	if err != nil {
		return fmt.Errorf("lock: %w", err)
	}
	if err := unlock(ctx); err != nil {
		return fmt.Errorf("unlock: %w", err)
	}
	return nil
}
