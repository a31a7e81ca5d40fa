package bench

// target is a figure that Holdfast wants to reach: a metric of ours, or its ratio to a
// rival's.
type target struct {
	scenario scenario
	rows     []int // of the scenario; nil: all
	unit     string
	against  against
	least    bool // whether the bound is the least that is good, and not the most
	bound    float64
}

// against is whom a metric is compared with.
type against string

const (
	nobody    against = ""
	anyRival  against = "best rival"
	aWoken    against = "best event-driven rival"
	bareFloor against = "floor"
)

var targets = []target{
	{scenario: uncontended, unit: unitRate, against: bareFloor, least: true, bound: .9},
	{scenario: uncontended, unit: unitCommands, bound: 2},
	{scenario: distinct, rows: []int{2, 3, 4}, unit: unitRate, against: anyRival, least: true, bound: 2},
	{scenario: oneName, rows: []int{1, 2, 3}, unit: unitRate, against: anyRival, least: true, bound: 100},
	{scenario: oneName, rows: []int{1, 2, 3}, unit: unitCommands, bound: .01},
	{scenario: oneName, rows: []int{1, 2, 3}, unit: unitJain, least: true, bound: .99},
	{scenario: oneName, rows: []int{1, 2, 3}, unit: unitStarved, bound: 0},
	{scenario: processes, rows: []int{0, 1, 2}, unit: unitRate, against: aWoken, least: true, bound: 1.3},
	{scenario: processes, rows: []int{0, 1, 2}, unit: unitCommands, bound: 2.1},
	{scenario: processes, rows: []int{0, 1, 2}, unit: unitJain, least: true, bound: .99},
	{scenario: processes, rows: []int{0, 1, 2}, unit: unitWait + unitP99, against: aWoken, bound: .25},
	{scenario: processes, rows: []int{3, 4, 5}, unit: unitRate, against: anyRival, least: true, bound: 20},
	{scenario: processes, rows: []int{3, 4, 5}, unit: unitCommands, bound: .1},
	{scenario: processes, rows: []int{3, 4, 5}, unit: unitJain, least: true, bound: .99},
	{scenario: processes, rows: []int{3, 4, 5}, unit: unitJainProc, least: true, bound: .99},
	// A poller's figure counts only the polls that came in time.
	{scenario: handover, unit: unitHandover + unitP50, against: aWoken, bound: .6},
	{scenario: queue, unit: unitLongest, bound: 1.5},
	{scenario: held, rows: []int{1}, unit: unitRenewals, bound: .02},
	{scenario: held, rows: []int{1}, unit: unitHeap, bound: 600},
	{scenario: parked, rows: []int{1}, unit: unitPerSecond, bound: 2},
}

func (p *printer) targets(r *Report) {
	begun := false
	for _, t := range targets {
		for i, row := range t.scenario.rows {
			if !t.has(i) {
				continue
			}
			if r.find(t.scenario, row, t.scenario.ours()) == nil {
				continue
			}
			v, name, ok := t.reached(r, row)
			if !begun {
				begun = true
				p.f("## Figures to reach\n\n")
				p.head("scenario", "load", "figure", "wanted", "measured", "reached")
			}
			figure, bound, yes := t.unit, "≤ ", "no"
			if t.against != nobody {
				figure += " ÷ " + string(t.against) + "'s" + name
			}
			if t.least {
				bound = "≥ "
			}
			measured := "-" // too slow for the metric, or nobody to compare with
			if ok {
				measured = number(v)
			}
			if ok && (v == t.bound || v > t.bound == t.least) {
				yes = "yes"
			}
			p.row(t.scenario.name, row.name, figure, bound+number(t.bound), measured, yes)
		}
	}
	if begun {
		p.f("\n")
	}
}

func (t target) has(row int) bool {
	for _, i := range t.rows {
		if i == row {
			return true
		}
	}
	return t.rows == nil
}

// reached returns what was measured, and with whom it is compared.
func (t target) reached(r *Report, row row) (v float64, name string, ok bool) {
	us := r.find(t.scenario, row, t.scenario.ours())
	var them *Result
	switch t.against {
	case nobody:
		v, ok = us.median(t.unit)
		return v, "", ok
	case bareFloor:
		them = r.find(t.scenario, row, "floor")
	case anyRival:
		them = r.bestRival(t.scenario, row)
	case aWoken:
		them = r.best(t.scenario, row, func(l library) bool { return l.role == eventy })
	}
	if all := ratios(us, them, t.unit); len(all) > 0 {
		return median(all), " (" + them.Library + ")", true
	}
	return 0, "", false
}
