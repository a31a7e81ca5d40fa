// Package bench measures Holdfast beside the lock libraries that a Go program would
// use instead, on one Redis, in one run. README.md has the method.
//
// A scenario is one question. It is measured for each of its contenders by a
// function that returns metrics; benchmarks (go test -bench) and the report
// (cmd/report) are two ways to run the same scenarios.
//
// The locks themselves are in internal/contender, what puts them under load and counts
// in internal/load, and internal/report has the form of what was found.
package bench

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast/bench/internal/contender"
	"github.com/holdfast-go/holdfast/bench/internal/load"
	"github.com/holdfast-go/holdfast/bench/internal/report"
)

// scenarios are all there are, in the order of the report.
var scenarios = []scenario{
	floors, uncontended, distinct, oneName, processes, handover, queue, fair, readers, linger, held, parked,
	permitFree, permitRefusal, permitHandover, permitCrowd, permitWeights, permitParked, permitCrash, wanted, election, ticket,
}

// scenario is one question that is put to several libraries under several loads.
type scenario struct {
	name      string // in file names and results
	question  string
	rows      []row
	libraries []contender.Library
	us        string   // the library that is compared with the others; empty: Holdfast's Mutex
	floor     string   // the library that no lock can be better than; empty: none is
	headline  string   // the unit of the metric that decides
	smaller   bool     // whether less of it is better
	shown     []string // units in tables
	once      bool     // counts and sizes, which do not vary: one round tells them
	slices    int      // windows are cut into so many, where small differences matter
	stretch   int      // windows are so many times as long
	measure   measure
}

// asked is the scenario as it is shown.
func (s scenario) asked() report.Scenario {
	var loads []string
	for _, r := range s.rows {
		loads = append(loads, r.name)
	}
	return report.Scenario{
		Name: s.name, Question: s.question, Loads: loads, Libraries: s.libraries,
		Ours: cmp.Or(s.us, contender.Ours), Floor: s.floor, Headline: s.headline, Smaller: s.smaller, Shown: s.shown,
	}
}

// row is one load.
type row struct {
	name  string // for a person and for benchstat: key=value
	n     int    // goroutines of each process, locks or waiters
	procs int    // processes; 0: this one
	hold  time.Duration
	way   time.Duration // what a message takes to the server or back; 0: it is on the same machine
	reads float64       // the share of read locks

	others float64 // the share of calls from another process
	turns  bool    // two processes call one after the other

	large bool // left out of brief runs
}

// Layout is how a report is shown.
func Layout() report.Layout {
	l := report.Layout{Headlines: headlines, Sentences: sentences, Charts: charts, Styles: styles}
	for _, s := range scenarios {
		l.Scenarios = append(l.Scenarios, s.asked())
	}
	return l
}

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
func (t trial) fits() bool {
	return (t.n == 1 || !t.library.Single) && (t.procs == 0 || t.library.Kind != contender.Local)
}

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
