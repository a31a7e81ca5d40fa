package report

import (
	"bytes"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"golang.org/x/text/language"
	"golang.org/x/text/message"

	"github.com/holdfast-go/holdfast/bench/internal/contender"
)

// Markdown is a report for people: a summary of what decides, then a table per
// scenario.
func (l Layout) Markdown(r *Report) []byte {
	p := new(printer)
	p.f("# Holdfast beside its peers, %s\n\n", r.Began.Format("2006-01-02 15:04"))
	p.machine(r)
	p.problems(r)
	p.shown(r, l)
	p.f("## Summary\n\n")
	p.summary(r, l.Scenarios)
	p.f("\n")
	p.losses(r, l.Scenarios)
	for _, s := range l.Scenarios {
		p.scenario(r, s)
	}
	return p.Bytes()
}

type printer struct{ bytes.Buffer }

func (p *printer) f(format string, args ...any) { fmt.Fprintf(p, format, args...) }

func (p *printer) row(cells ...string) { p.f("| %s |\n", strings.Join(cells, " | ")) }

func (p *printer) head(cells ...string) {
	p.row(cells...)
	p.f("|%s\n", strings.Repeat(" --- |", len(cells)))
}

func (p *printer) machine(r *Report) {
	m := r.Machine
	p.f("%s, %d cores, %s, %s, redis-server %s. %s. Holdfast at %s", m.CPU, m.Cores, m.Kernel, m.Go, m.Redis, m.Placement, m.Commit)
	for _, path := range slices.Sorted(maps.Keys(m.Modules)) {
		p.f(", %s %s", strings.TrimPrefix(path, "github.com/"), m.Modules[path])
	}
	p.f(".\n\nMedians over the rounds, %d of %s; took %s. ", r.Rounds, r.Window, r.Took)
	var other []float64
	for _, x := range r.Results {
		other = append(other, x.Other...)
	}
	if len(other) > 0 {
		spoiled := 0
		for _, o := range other {
			if o > Disturbed {
				spoiled++
			}
		}
		p.f("Other programs used %s cores in the median and %s at most; more than %v in %d of %d measurements.",
			number(median(other)), number(slices.Max(other)), Disturbed, spoiled, len(other))
	}
	checked := 0
	for _, x := range r.Results {
		checked += len(x.Metrics[Overlaps].measured())
	}
	p.f("\n\nRatios are medians of the ratios within each round.")
	if checked > 0 {
		p.f(" In %d measurements a counter under the lock told that no two held it at the same time.", checked)
	}
	p.f("\n\n")
}

// problems are what was not measured, and why.
func (p *printer) problems(r *Report) {
	for _, s := range r.Skipped {
		p.f("Skipped %s.\n\n", s)
	}
	for _, x := range r.Failed {
		p.f("**Failed** %s: %s.\n\n", x.What, x.Error)
	}
}

// shown is what RefreshREADME and RefreshPage write of the run: those pages can be checked against the report without its JSON.
func (p *printer) shown(r *Report, l Layout) {
	p.f("## In README and PERFORMANCE\n\n")
	p.sentences(r, l)
	p.headlines(r, l)
}

// summary has the deciding metric of each load: Holdfast's, the best rival's, and the floor.
func (p *printer) summary(r *Report, scenarios []Scenario) {
	p.head("scenario", "load", "metric", "holdfast", "best rival", "its figure", "holdfast ÷ best rival", "holdfast ÷ floor")
	for _, s := range scenarios {
		for _, load := range s.Loads {
			us := r.find(s, load, s.Ours)
			if us == nil {
				continue
			}
			cells := []string{s.Name, load, s.metric(), "-", "-", "-", "-", "-"}
			if v, ok := us.median(s.Headline); ok {
				cells[3] = number(v)
			}
			if best := r.bestRival(s, load, s.Headline, s.Smaller); best != nil {
				b, _ := best.median(s.Headline)
				cells[4], cells[5], cells[6] = best.Library, number(b), ratio(us, best, s.Headline)
			}
			if f := r.find(s, load, s.Floor); f != nil {
				cells[7] = ratio(us, f, s.Headline)
			}
			p.row(cells...)
		}
	}
}

func (s Scenario) metric() string {
	if s.Smaller {
		return s.Headline + " (less is better)"
	}
	return s.Headline
}

func (p *printer) scenario(r *Report, s Scenario) {
	begun := false
	for _, load := range s.Loads {
		for _, l := range s.Libraries {
			x := r.find(s, load, l.Name)
			if x == nil {
				continue
			}
			if !begun {
				begun = true
				p.f("## %s\n\n%s\n\n", s.Name, s.Question)
				p.head(append(append([]string{"load", "library"}, s.Shown...), s.Ours+" ÷ this, "+s.Headline)...)
			}
			cells := []string{load, l.Name}
			for _, unit := range s.Shown {
				cell := "-"
				if v, ok := x.median(unit); ok {
					cell = number(v)
					if unit == s.Headline {
						cell += between(x.Metrics[unit].measured())
					}
				}
				cells = append(cells, cell)
			}
			against := "-"
			if l.Name != s.Ours {
				against = ratio(r.find(s, load, s.Ours), x, s.Headline)
			}
			p.row(append(cells, against)...)
		}
	}
	if begun {
		p.f("\n")
	}
}

func (r *Report) find(s Scenario, load string, library string) *Result {
	for _, x := range r.Results {
		if x.Scenario == s.Name && x.Load == load && x.Library == library {
			return x
		}
	}
	return nil
}

// bestRival returns the library with the best median of a metric which is neither Holdfast nor bare.
func (r *Report) bestRival(s Scenario, load, unit string, smaller bool) *Result {
	var best *Result
	var bestValue float64
	for _, l := range s.Libraries {
		if l.Role != contender.Rival && l.Role != contender.Eventy {
			continue
		}
		x := r.find(s, load, l.Name)
		v, ok := x.median(unit)
		if ok && (best == nil || smaller == (v < bestValue)) {
			best, bestValue = x, v
		}
	}
	return best
}

// ratio is the median over the rounds of a's metric by b's.
func ratio(a, b *Result, unit string) string {
	all := ratios(a, b, unit)
	if len(all) == 0 {
		return "-"
	}
	return number(median(all)) + between(all)
}

func ratios(a, b *Result, unit string) []float64 {
	if a == nil || b == nil {
		return nil
	}
	var all []float64
	for round, value := range a.Metrics[unit] {
		if other := b.Metrics[unit][round]; other != 0 {
			all = append(all, value/other)
		}
	}
	return all
}

// between is the range of values, if there are several.
func between(values []float64) string {
	if len(values) < 2 {
		return ""
	}
	return fmt.Sprintf(" (%s…%s)", number(slices.Min(values)), number(slices.Max(values)))
}

// number formats with three significant digits, or all before the point.
func number(v float64) string {
	switch a := math.Abs(v); {
	case a == 0:
		return "0"
	case a >= 100:
		return english.Sprintf("%.0f", v)
	case a >= 10:
		return fmt.Sprintf("%.1f", v)
	case a >= 1:
		return fmt.Sprintf("%.2f", v)
	default:
		return fmt.Sprintf("%.2g", v)
	}
}

// english separates thousands.
var english = message.NewPrinter(language.English)
