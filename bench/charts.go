package bench

import (
	"fmt"
	"io"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/plotutil"
	"gonum.org/v1/plot/vg"
)

// chart is a picture of one metric of a scenario.
type chart struct {
	name     string // of the file
	title    string
	axis     string
	scenario scenario
	rows     []int // of the scenario: points of a line for each library, or a bar for each if it is one
	unit     string
	log      bool // the vertical axis, where one is a hundred times another
	x        func(row) float64
}

var charts = []chart{
	{
		name: "distinct", title: "Locks of their own, one process", axis: "goroutines",
		scenario: distinct, rows: []int{0, 1, 2, 3, 4}, unit: unitRate, x: func(r row) float64 { return float64(r.n) },
	}, {
		name: "processes", title: "One lock, 16 goroutines in each process", axis: "processes",
		scenario: processes, rows: []int{3, 4, 5}, unit: unitRate, log: true, x: func(r row) float64 { return float64(r.procs) },
	}, {
		name: "queue", title: "100 callers, 4 processes, 1 ms under the lock: longest wait ÷ mean",
		scenario: queue, rows: []int{0}, unit: unitLongest,
	},
}

const chartWidth, chartHeight = 16 * vg.Centimeter, 9 * vg.Centimeter

// Charts calls draw for each chart whose scenario was measured, with the name of its
// file and what writes it as SVG.
func (r *Report) Charts(draw func(name string, svg io.WriterTo) error) error {
	for _, c := range charts {
		p, err := c.plot(r)
		if err != nil {
			return fmt.Errorf("chart %s: %w", c.name, err)
		}
		if p == nil {
			continue
		}
		svg, err := p.WriterTo(chartWidth, chartHeight, "svg")
		if err != nil {
			return fmt.Errorf("chart %s: %w", c.name, err)
		}
		if err := draw(c.name, svg); err != nil {
			return err
		}
	}
	return nil
}

// plot returns nil if there is nothing to show.
func (c chart) plot(r *Report) (*plot.Plot, error) {
	p := plot.New()
	p.Title.Text, p.X.Label.Text, p.Y.Label.Text = c.title, c.axis, c.unit
	p.Title.Padding = vg.Points(6)
	if len(c.rows) == 1 {
		return c.bars(p, r)
	}
	return c.lines(p, r)
}

func (c chart) lines(p *plot.Plot, r *Report) (*plot.Plot, error) {
	var lines []any
	var ticks []plot.Tick
	for _, i := range c.rows {
		x := c.x(c.scenario.rows[i])
		ticks = append(ticks, plot.Tick{Value: x, Label: fmt.Sprint(x)})
	}
	for _, l := range c.scenario.libraries {
		var points plotter.XYs
		for _, i := range c.rows {
			if v, ok := r.find(c.scenario, c.scenario.rows[i], l.name).median(c.unit); ok && v > 0 {
				points = append(points, plotter.XY{X: c.x(c.scenario.rows[i]), Y: v})
			}
		}
		if len(points) > 0 {
			lines = append(lines, l.name, points)
		}
	}
	if len(lines) == 0 {
		return nil, nil
	}
	p.X.Scale, p.X.Tick.Marker = plot.LogScale{}, plot.ConstantTicks(ticks)
	if c.log {
		p.Y.Scale, p.Y.Tick.Marker = plot.LogScale{}, plot.LogTicks{Prec: -1}
	} else {
		p.Y.Min = 0
	}
	p.Add(plotter.NewGrid())
	if err := plotutil.AddLinePoints(p, lines...); err != nil {
		return nil, err
	}
	p.Legend.Top, p.Legend.Left = true, true
	p.Y.Max *= 1.3 // room for the legend
	if c.log {
		p.Y.Max *= 100
	}
	return p, nil
}

// bars has the smallest on top.
func (c chart) bars(p *plot.Plot, r *Report) (*plot.Plot, error) {
	type bar struct {
		name string
		v    float64
	}
	var all []bar
	for _, l := range c.scenario.libraries {
		if v, ok := r.find(c.scenario, c.scenario.rows[c.rows[0]], l.name).median(c.unit); ok {
			all = append(all, bar{fmt.Sprintf("%s  %s", l.name, number(v)), v})
		}
	}
	if len(all) == 0 {
		return nil, nil
	}
	slices.SortFunc(all, func(a, b bar) int { return int(b.v*1000) - int(a.v*1000) })
	var names []string
	var values plotter.Values
	for _, b := range all {
		names, values = append(names, b.name), append(values, b.v)
	}
	chart, err := plotter.NewBarChart(values, 0.6*vg.Centimeter)
	if err != nil {
		return nil, err
	}
	chart.Horizontal = true
	chart.Color = plotutil.Color(2)
	p.X.Label.Text, p.Y.Label.Text = c.unit, " " // room for long names
	p.X.Min = 0
	p.Add(chart)
	p.X.Max *= 1.05
	p.NominalY(names...)
	return p, nil
}
