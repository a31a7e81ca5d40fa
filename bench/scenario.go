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
	"time"

	"github.com/holdfast-go/holdfast/bench/internal/contender"
	"github.com/holdfast-go/holdfast/bench/internal/report"
)

// scenarios are all there are, in the order of the report.
var scenarios = []scenario{
	floors, uncontended, distinct, oneName, processes, handover, queue, fair, readers, linger, held, parked,
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
