package bench

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
)

// chart is a picture of one metric of a scenario, on a logarithmic axis: one library's
// figure is often ten or a hundred times another's.
type chart struct {
	name     string // of the file
	title    string
	axis     string // what differs between the rows
	label    string // the metric in words
	scenario scenario
	rows     []int // of the scenario: points of a line for each library, or a dot for each if it is one
	unit     string
	woken    bool // leave out who polls
	x        func(row) float64
}

// charts tell the story in five pictures: where locks change hands among processes, and
// what that costs; how long the lock belongs to nobody; who waits how long; and, last,
// where nobody waits and we lead by less or not at all.
var charts = []chart{
	{
		name: "processes", title: "One lock, 16 goroutines in each process", axis: "processes", label: "Lock and Unlock, pairs per second",
		scenario: processes, rows: []int{3, 4, 5}, unit: unitRate, x: processCount,
	}, {
		name: "commands", title: "The same: what it costs Redis", axis: "processes", label: "commands per pair of Lock and Unlock; less is better",
		scenario: processes, rows: []int{3, 4, 5}, unit: unitCommands, x: processCount,
	}, {
		name: "handover", title: "Hand-over to a process that waits", label: "µs from Unlock to the return of Lock, median; less is better",
		// A poller's figure is of the few times when it got in between Unlock and the
		// next Lock of the same process, which are quick and say nothing.
		scenario: handover, rows: []int{0}, unit: unitHandover + unitP50, woken: true,
	}, {
		name: "queue", title: "100 callers, 4 processes, 1 ms of work", label: "the longest wait ÷ the wait if all took turns; 1 is best",
		scenario: queue, rows: []int{0}, unit: unitLongest,
	}, {
		name: "distinct", title: "One process, each goroutine has a lock of its own", axis: "goroutines", label: "Lock and Unlock, pairs per second",
		scenario: distinct, rows: []int{0, 1, 2, 3, 4}, unit: unitRate, x: func(r row) float64 { return float64(r.n) },
	},
}

func processCount(r row) float64 { return float64(r.procs) }

// Charts calls draw for each chart whose scenario was measured, with the name of its
// file and what writes it as SVG.
func (r *Report) Charts(draw func(name string, svg io.WriterTo) error) error {
	for _, c := range charts {
		all := c.series(r)
		if len(all) == 0 {
			continue
		}
		picture := c.lines
		if c.single() {
			picture = c.dots
		}
		p, err := picture(all)
		if err != nil {
			return fmt.Errorf("chart %s: %w", c.name, err)
		}
		svg, err := p.svg()
		if err != nil {
			return fmt.Errorf("chart %s: %w", c.name, err)
		}
		if err := draw(c.name, bytes.NewReader(svg)); err != nil {
			return err
		}
	}
	return nil
}

func (c chart) single() bool { return len(c.rows) == 1 }

// series is what a chart has of one library.
type series struct {
	library string
	points  plotter.XYs
}

func (s series) last() float64 { return s.points[len(s.points)-1].Y }

// series returns what there is to show, the largest first, which is the order from top to
// bottom.
func (c chart) series(r *Report) []series {
	var all []series
	for _, l := range c.scenario.libraries {
		if c.woken && l.role != eventy && l.role != own {
			continue
		}
		s := series{library: l.name}
		for _, i := range c.rows {
			row, x := c.scenario.rows[i], 0.
			if c.x != nil {
				x = c.x(row)
			}
			if v, ok := r.find(c.scenario, row, l.name).median(c.unit); ok && v > 0 {
				s.points = append(s.points, plotter.XY{X: x, Y: v})
			}
		}
		if len(s.points) > 0 {
			all = append(all, s)
		}
	}
	slices.SortStableFunc(all, func(a, b series) int { return cmp.Compare(b.last(), a.last()) })
	return all
}

// lines has the rows on the horizontal axis; each has a multiple of the one before.
func (c chart) lines(all []series) (*picture, error) {
	p := newPicture(c.title, c.label)
	p.X.Label.Text = c.axis
	var ticks []plot.Tick
	for _, i := range c.rows {
		x := c.x(c.scenario.rows[i])
		ticks = append(ticks, plot.Tick{Value: x, Label: short(x)})
	}
	p.X.Scale, p.X.Tick.Marker = plot.LogScale{}, plot.ConstantTicks(ticks)
	p.X.Min, p.X.Max = ticks[0].Value, ticks[len(ticks)-1].Value // also of rows that were left out
	for _, s := range all {
		if err := p.line(s.library, s.points); err != nil {
			return nil, err
		}
	}
	wholeDecades(&p.Y)
	return p, nil
}

// dots has a row for each library, with its figure; the smallest, which is the best, is
// on top.
func (c chart) dots(all []series) (*picture, error) {
	p := newPicture(c.title, c.label)
	var names []string
	for i, s := range all {
		names = append(names, styleOf(s.library).label)
		if err := p.dot(s.library, plotter.XY{X: s.last(), Y: float64(i)}); err != nil {
			return nil, err
		}
	}
	p.NominalY(names...)
	wholeDecades(&p.X)
	return p, nil
}

// wholeDecades makes an axis logarithmic.
func wholeDecades(a *plot.Axis) {
	least, most := math.Floor(math.Log10(a.Min)), math.Ceil(math.Log10(a.Max))
	a.Min, a.Max = math.Pow(10, least), math.Pow(10, max(most, least+1))
	a.Scale, a.Tick.Marker = plot.LogScale{}, decades{}
}
