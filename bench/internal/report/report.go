// Package report is what a comparison of libraries found, and how it is shown: as
// Markdown, as charts and as the figures of a README. It does not know what the figures
// are of: a Layout tells.
package report

import (
	"fmt"
	"slices"
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
