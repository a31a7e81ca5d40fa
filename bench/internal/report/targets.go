package report

import "github.com/holdfast-go/holdfast/bench/internal/contender"

func (p *printer) targets(r *Report, targets []Target) {
	begun := false
	for _, t := range targets {
		for i, load := range t.Scenario.Loads {
			if !t.has(i) {
				continue
			}
			if r.find(t.Scenario, load, t.Scenario.Ours) == nil {
				continue
			}
			v, name, ok := t.reached(r, load)
			if !begun {
				begun = true
				p.f("## Figures to reach\n\n")
				p.head("scenario", "load", "figure", "wanted", "measured", "reached")
			}
			figure, bound, yes := t.Unit, "≤ ", "no"
			if t.Against != Nobody {
				figure += " ÷ " + string(t.Against) + "'s" + name
			}
			if t.Least {
				bound = "≥ "
			}
			measured := "-" // too slow for the metric, or no rival to compare with
			if ok {
				measured = number(v)
			}
			if ok && (v == t.Bound || v > t.Bound == t.Least) {
				yes = "yes"
			}
			p.row(t.Scenario.Name, load, figure, bound+number(t.Bound), measured, yes)
		}
	}
	if begun {
		p.f("\n")
	}
}

func (t Target) has(row int) bool {
	for _, i := range t.Rows {
		if i == row {
			return true
		}
	}
	return t.Rows == nil
}

// reached returns what was measured, and with whom it is compared.
func (t Target) reached(r *Report, load string) (v float64, name string, ok bool) {
	us := r.find(t.Scenario, load, t.Scenario.Ours)
	var them *Result
	switch t.Against {
	case Nobody:
		v, ok = us.median(t.Unit)
		return v, "", ok
	case Floor:
		them = r.find(t.Scenario, load, t.Scenario.Floor)
	case Plain:
		them = r.find(t.Scenario, load, contender.Ours)
	case AnyRival:
		them = r.bestRival(t.Scenario, load)
	case AWoken:
		them = r.best(t.Scenario, load, t.Scenario.Headline, t.Scenario.Smaller, func(l contender.Library) bool { return l.Role == contender.Eventy })
	}
	if all := ratios(us, them, t.Unit); len(all) > 0 {
		return median(all), " (" + them.Library + ")", true
	}
	return 0, "", false
}
