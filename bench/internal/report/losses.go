package report

import "strings"

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
			best := r.bestRival(s, load)
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
