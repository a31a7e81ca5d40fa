package bench

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"time"
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

// Report is what a run found. It is the format of the result files.
type Report struct {
	Began   time.Time `json:"began"`
	Took    string    `json:"took"`
	Machine Machine   `json:"machine"`
	Rounds  int       `json:"rounds"`
	Window  string    `json:"window"`
	Results []*Result `json:"results"`
	// Skipped are libraries that cannot run here, and why; Failed are measurements that
	// ended with an error.
	Skipped []string  `json:"skipped,omitempty"`
	Failed  []Failure `json:"failed,omitempty"`
}

// Failure is a measurement that ended with an error. It is grave, and the run has
// failed, if Holdfast did not work, or if any lock did not exclude.
type Failure struct {
	What  string `json:"what"`
	Error string `json:"error"`
	Grave bool   `json:"grave"`
}

func (l library) grave(err error) bool {
	return l.role == own || errors.As(err, new(violation))
}

// Err returns the first grave failure.
func (r *Report) Err() error {
	for _, f := range r.Failed {
		if f.Grave {
			return fmt.Errorf("%s: %s", f.What, f.Error)
		}
	}
	return nil
}

// Machine is what the figures depend on beside the code.
type Machine struct {
	CPU       string            `json:"cpu"`
	Cores     int               `json:"cores"`
	Kernel    string            `json:"kernel"`
	Placement string            `json:"placement"`
	Go        string            `json:"go"`
	Redis     string            `json:"redis"`
	Commit    string            `json:"commit"` // of Holdfast
	Modules   map[string]string `json:"modules"`
}

// Result is one library under one load.
type Result struct {
	Scenario string `json:"scenario"`
	Load     string `json:"load"`
	Library  string `json:"library"`
	// Metrics has a value per round, or slice of one, by unit.
	Metrics map[string][]float64 `json:"metrics"`
	// Other is how many cores other programs used meanwhile, likewise.
	Other []float64 `json:"other_cores"`
}

// median returns the metric's median over the rounds, and false if it has none.
func (r *Result) median(unit string) (float64, bool) {
	if r == nil || len(r.Metrics[unit]) == 0 {
		return 0, false
	}
	return median(r.Metrics[unit]), true
}

func median(values []float64) float64 {
	v := slices.Sorted(slices.Values(values))
	n := len(v)
	return (v[(n-1)/2] + v[n/2]) / 2
}

// Run measures everything. Rounds go over all scenarios, and libraries take turns
// within a load, so that what changes on the machine meanwhile meets all of them.
func Run(ctx context.Context, server *Server, pinning Pinning, plan Plan) (*Report, error) {
	began := time.Now()
	r := &runner{server: server, plan: plan, results: make(map[string]*Result)}
	for round := range plan.Rounds {
		for _, s := range scenarios {
			if plan.wants(s) && (round == 0 || !s.once) {
				r.schedule(s, round)
			}
		}
	}
	if len(r.steps) == 0 {
		return nil, fmt.Errorf("no scenario has %q in its name", plan.Only)
	}
	report := &Report{
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
			report.Failed = append(report.Failed, Failure{step.String(), err.Error(), step.library.grave(err)})
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
	}
	report.Results, report.Skipped = r.order, r.skipped
	report.Took = time.Since(began).Round(time.Second).String()
	return report, nil
}

type runner struct {
	server  *Server
	plan    Plan
	steps   []step
	spent   time.Duration // of Plan.Patience
	results map[string]*Result
	order   []*Result
	skipped []string
}

// wants reports whether a scenario is asked for.
func (p Plan) wants(s scenario) bool {
	return named(s.name, p.Only)
}

func (p Plan) wantsLibrary(l library) bool { return named(l.name, p.Libraries) }

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
	library  library
	round    int
	window   time.Duration
}

func (s step) String() string {
	return fmt.Sprintf("round %d: %s %s %s", s.round+1, s.scenario.name, s.row.name, s.library.name)
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
				if r.plan.wantsLibrary(l) && !t.tooDear() && r.runs(l) {
					r.steps = append(r.steps, step{s, row, l, round, window})
				}
			}
		}
	}
}

// runs reports whether a library can run here, and notes the reason if not.
func (r *runner) runs(l library) bool {
	err := l.ready()
	if err == nil {
		return true
	}
	if note := fmt.Sprintf("%s: %v", l.name, err); !slices.Contains(r.skipped, note) {
		r.skipped = append(r.skipped, note)
	}
	return false
}

const (
	// disturbed is how many cores of others spoil a measurement.
	disturbed = .1
	// repeats is how often a spoiled one is made again at most.
	repeats = 3
)

// take makes one measurement, again if others disturbed it, and keeps the one that
// was disturbed least.
func (r *runner) take(ctx context.Context, s step) error {
	var best metrics
	var least float64
	for try := 0; ; try++ {
		if err := r.calm(); err != nil {
			return err
		}
		begun := time.Now()
		before, err := r.server.elsewhere()
		if err != nil {
			return err
		}
		m, err := s.scenario.measure(ctx, trial{r.server, s.library, s.row, s.window})
		if err != nil {
			return err
		}
		after, err := r.server.elsewhere()
		if err != nil {
			return err
		}
		took := time.Since(begun)
		other := max(0, float64(after-before)/float64(took))
		if best == nil || other < least {
			best, least = m, other
		}
		if least <= disturbed || try == repeats || r.spent+took > r.plan.Patience {
			break
		}
		r.spent += took
	}
	r.keep(s, best, least)
	return nil
}

// calm waits until other programs leave the cores alone, or patience ends.
func (r *runner) calm() error {
	const sample = 100 * time.Millisecond // ten of the kernel's ticks
	for r.spent < r.plan.Patience {
		before, err := r.server.elsewhere()
		if err != nil {
			return err
		}
		time.Sleep(sample)
		after, err := r.server.elsewhere()
		if err != nil {
			return err
		}
		if after-before <= sample/5 {
			return nil
		}
		r.spent += sample
	}
	return nil
}

func (r *runner) keep(s step, m metrics, other float64) {
	key := s.scenario.name + "/" + s.row.name + "/" + s.library.name
	result := r.results[key]
	if result == nil {
		result = &Result{
			Scenario: s.scenario.name,
			Load:     s.row.name,
			Library:  s.library.name,
			Metrics:  make(map[string][]float64),
		}
		r.results[key] = result
		r.order = append(r.order, result)
	}
	for unit, v := range m {
		result.Metrics[unit] = append(result.Metrics[unit], v)
	}
	result.Other = append(result.Other, other)
}

// machine describes where the report is made. What cannot be found out is empty.
func machine(server *Server, pinning Pinning) Machine {
	m := Machine{
		CPU:       cpuModel(),
		Cores:     cores(),
		Placement: pinning.String(),
		Go:        runtime.Version() + " " + runtime.GOOS + "/" + runtime.GOARCH,
		Redis:     server.version,
		Modules:   make(map[string]string),
	}
	m.Kernel = output("uname", "-sr")
	m.Commit = output("git", "describe", "--always", "--dirty", "--abbrev=12")
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, d := range info.Deps {
			switch d.Path {
			case "github.com/redis/go-redis/v9", "github.com/redis/rueidis",
				"github.com/go-redsync/redsync/v4", "github.com/bsm/redislock":
				m.Modules[d.Path] = d.Version
			}
		}
	}
	return m
}

func output(name string, args ...string) string {
	out, err := exec.Command(name, args...).Output()
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(out))
}

func cpuModel() string {
	info, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(info)) {
		if k, v, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(k) == "model name" {
			return strings.TrimSpace(v)
		}
	}
	return ""
}

// cores returns the machine's cores; runtime.NumCPU only knows those left by Pin.
func cores() int {
	n := 0
	info, _ := os.ReadFile("/proc/cpuinfo")
	for line := range strings.Lines(string(info)) {
		if strings.HasPrefix(line, "processor") {
			n++
		}
	}
	return cmp.Or(n, runtime.NumCPU())
}
