package bench

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/bench/internal/contender"
	"github.com/holdfast-go/holdfast/bench/internal/load"
	"github.com/holdfast-go/holdfast/bench/internal/report"
)

// Plan is how a report is made.
type Plan struct {
	Rounds int           // how often each speed is measured; counts and sizes are taken once
	Window time.Duration // how long a measurement watches a steady state
	// Only and Libraries are parts of the names of scenarios and libraries to run, with
	// commas between; empty: all.
	Only, Libraries string
	// Patience is the time that may go into waiting for other programs to leave the
	// cores, and into repeating measurements in which they did not.
	Patience time.Duration
	Progress func(done, total int, what string)
}

// Run measures everything. Rounds go over all scenarios, and libraries take turns
// within a load, so that what changes on the machine meanwhile meets all of them.
func Run(ctx context.Context, server *load.Server, pinning load.Pinning, plan Plan) (*report.Report, error) {
	began := time.Now()
	r := &runner{server: server, plan: plan, results: make(map[string]*report.Result)}
	for round := range plan.Rounds {
		for _, s := range scenarios {
			if plan.wants(s) && (round == 0 || !s.once) {
				r.schedule(s, round)
			}
		}
	}
	if len(r.steps) == 0 {
		return nil, fmt.Errorf("no scenario with %q in its name has a library with %q in its own", plan.Only, plan.Libraries)
	}
	found := &report.Report{
		Began:   began,
		Machine: machine(server, pinning),
		Rounds:  plan.Rounds,
		Window:  plan.Window.String(),
	}
	for i, step := range r.steps {
		if plan.Progress != nil {
			plan.Progress(i, len(r.steps), step.String())
		}
		if err := r.take(ctx, step); err != nil {
			found.Failed = append(found.Failed, report.Failure{What: step.String(), Error: err.Error(), Grave: grave(step.library, err)})
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
	}
	found.Results, found.Skipped = r.order, r.skipped
	found.Took = time.Since(began).Round(time.Second).String()
	return found, nil
}

type runner struct {
	server  *load.Server
	plan    Plan
	steps   []step
	spent   time.Duration // of Plan.Patience
	results map[string]*report.Result
	order   []*report.Result
	skipped []string
}

// wants reports whether a scenario is asked for.
func (p Plan) wants(s scenario) bool {
	return named(s.name, p.Only)
}

func (p Plan) wantsLibrary(l contender.Library) bool { return named(l.Name, p.Libraries) }

func named(name, parts string) bool {
	for part := range strings.SplitSeq(parts, ",") {
		if strings.Contains(name, part) {
			return true
		}
	}
	return false
}

// step is one measurement to be made.
type step struct {
	scenario scenario
	row      row
	library  contender.Library
	round    int
	nth      int // of its scenario, row and library
	window   time.Duration
}

func (s step) String() string {
	return fmt.Sprintf("round %d: %s %s %s", s.round+1, s.scenario.name, s.row.name, s.library.Name)
}

// schedule adds the steps of one scenario. Each round, or slice of it, begins with
// another library.
func (r *runner) schedule(s scenario, round int) {
	slices := max(s.slices, 1)
	window := r.plan.Window * time.Duration(max(s.stretch, 1)) / time.Duration(slices)
	for _, row := range s.rows {
		for slice := range slices {
			for i := range s.libraries {
				l := s.libraries[(i+round*slices+slice)%len(s.libraries)]
				t := trial{library: l, row: row, window: r.plan.Window}
				if r.plan.wantsLibrary(l) && t.fits() && !t.tooDear() && r.runs(l) {
					r.steps = append(r.steps, step{s, row, l, round, round*slices + slice, window})
				}
			}
		}
	}
}

// runs reports whether a library can run here, and notes the reason if not.
func (r *runner) runs(l contender.Library) bool {
	err := l.Ready()
	if err == nil {
		return true
	}
	if note := fmt.Sprintf("%s: %v", l.Name, err); !slices.Contains(r.skipped, note) {
		r.skipped = append(r.skipped, note)
	}
	return false
}

// repeats is how often a measurement that others disturbed is made again at most.
const repeats = 3

// take makes one measurement, again if others disturbed it, and keeps the one that was
// disturbed least.
func (r *runner) take(ctx context.Context, s step) error {
	var best metrics
	var least float64
	for try := 0; ; try++ {
		if err := r.calm(); err != nil {
			return err
		}
		r.rehearse(ctx, s)
		begun := time.Now()
		before, err := r.server.Elsewhere()
		if err != nil {
			return err
		}
		m, err := s.scenario.measure(ctx, trial{r.server, s.library, s.row, s.window})
		if err != nil {
			return err
		}
		after, err := r.server.Elsewhere()
		if err != nil {
			return err
		}
		took := time.Since(begun)
		other := max(0, float64(after-before)/float64(took))
		if best == nil || other < least {
			best, least = m, other
		}
		if least <= report.Disturbed || try == repeats || r.spent+took > r.plan.Patience {
			break
		}
		r.spent += took
	}
	r.keep(s, best, least)
	return nil
}

// rehearsals is how often a virtual machine does what is to be measured, at most, before it is.
const rehearsals = 6

// rehearse has virtual machines do what is to be measured, before the first time that it is, until they
// do not become faster by it any more: they compile what runs often, while it runs.
func (r *runner) rehearse(ctx context.Context, s step) {
	if s.library.Open != nil || s.nth > 0 || s.scenario.once || r.plan.Window < briefWindow {
		return
	}
	window := max(s.window, r.plan.Window)
	for best, n := math.Inf(1), 0; n < rehearsals; n++ {
		m, err := s.scenario.measure(ctx, trial{r.server, s.library, s.row, window})
		if err != nil || m[unitClient] > .9*best { // if it fails, so will the measurement, which says so
			return
		}
		best = m[unitClient]
	}
}

// calm waits until other programs leave the cores alone, or patience ends.
func (r *runner) calm() error {
	const sample = 100 * time.Millisecond // ten of the kernel's ticks
	for r.spent < r.plan.Patience {
		before, err := r.server.Elsewhere()
		if err != nil {
			return err
		}
		time.Sleep(sample)
		after, err := r.server.Elsewhere()
		if err != nil {
			return err
		}
		if after-before <= sample/10 {
			return nil
		}
		r.spent += sample
	}
	return nil
}

func (r *runner) keep(s step, m metrics, other float64) {
	key := s.scenario.name + "/" + s.row.name + "/" + s.library.Name
	result := r.results[key]
	if result == nil {
		result = &report.Result{
			Scenario: s.scenario.name,
			Load:     s.row.name,
			Library:  s.library.Name,
			Metrics:  make(map[string]report.Series),
		}
		r.results[key] = result
		r.order = append(r.order, result)
	}
	for unit, v := range m {
		if result.Metrics[unit] == nil {
			result.Metrics[unit] = make(report.Series)
		}
		result.Metrics[unit][s.nth] = v
	}
	result.Other = append(result.Other, other)
}

// grave reports whether the whole run has failed with a measurement.
func grave(l contender.Library, err error) bool {
	return l.Role == contender.Own || errors.As(err, new(load.Violation))
}
