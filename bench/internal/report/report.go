// Package report is what a comparison of libraries found, and how it is shown: as
// Markdown, as charts and as the figures of a README. It does not know what the figures
// are of: a Layout tells.
package report

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// Report is what a run found. As JSON it is what the program report writes and reads.
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
	Scenario string            `json:"scenario"`
	Load     string            `json:"load"`
	Library  string            `json:"library"`
	Metrics  map[string]Series `json:"metrics"` // by unit
	// Other is how many cores other programs used meanwhile, each time.
	Other []float64 `json:"other_cores"`
}

// median returns the metric's median over the rounds, and false if it has none.
func (r *Result) median(unit string) (float64, bool) {
	if r == nil {
		return 0, false
	}
	measured := r.Metrics[unit].measured()
	if len(measured) == 0 {
		return 0, false
	}
	return median(measured), true
}

func median(values []float64) float64 {
	v := slices.Sorted(slices.Values(values))
	n := len(v)
	return (v[(n-1)/2] + v[n/2]) / 2
}

// Disturbed is how many cores of others spoil a measurement.
const Disturbed = .1

// Series has a metric's values by the round, or slice of one, in which they were measured.
type Series map[int]float64

// measured are the values, in any order.
func (s Series) measured() []float64 { return slices.Collect(maps.Values(s)) }

// more reports whether more of a metric is better, less being so otherwise.
func more(unit string) bool {
	return strings.HasSuffix(unit, "/s") && unit != PerSecond || unit == Jain || unit == JainProcs
}

// loss is a metric in which another does better than we do.
type loss struct {
	scenario, load, unit string
	ours                 float64
	rival                *Result
	theirs               float64
	ratio                string
}

// losses are those by more than a twentieth: of the metric that decides to any rival, and
// of the others to who decides best. A poller that starves most of its waiters has good
// quantiles; that is no loss to it.
func (r *Report) losses(scenarios []Scenario) []loss {
	var all []loss
	for _, s := range scenarios {
		for _, load := range s.Loads {
			us := r.find(s, load, s.Ours)
			best := r.bestRival(s, load, s.Headline, s.Smaller)
			if us == nil || best == nil {
				continue
			}
			for _, unit := range s.Shown {
				a, ok := us.median(unit)
				b, ok2 := best.median(unit)
				if !ok || !ok2 || !(more(unit) && a < b*.95 || !more(unit) && a > b*1.05 && a-b > .01) {
					continue
				}
				all = append(all, loss{s.Name, load, unit, a, best, b, ratio(us, best, unit)})
			}
		}
	}
	return all
}

func (p *printer) losses(r *Report, scenarios []Scenario) {
	p.f("## Where we lose\n\n")
	all := r.losses(scenarios)
	if len(all) == 0 {
		p.f("Nowhere by more than a twentieth, among the best rivals above.\n\n")
		return
	}
	p.f("Against the best rival of each line above, by more than a twentieth.\n\n")
	p.head("scenario", "load", "metric", "ours", "best rival", "its figure", "ours ÷ its")
	for _, l := range all {
		p.row(l.scenario, l.load, l.unit, number(l.ours), l.rival.Library, number(l.theirs), l.ratio)
	}
	p.f("\n")
}
