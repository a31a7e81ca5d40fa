package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"

	"github.com/holdfast-go/holdfast/bench/internal/contender"
)

// SVGs are the charts whose scenarios were measured, by their names.
func (l Layout) SVGs(r *Report) (map[string][]byte, error) {
	svgs := make(map[string][]byte)
	for _, c := range l.Charts {
		all := c.series(r)
		if len(all) == 0 {
			continue
		}
		picture := c.lines
		if len(c.Rows) == 1 {
			picture = c.dots
		}
		p, err := picture(l, all)
		if err == nil {
			svgs[c.Name], err = p.svg()
		}
		if err != nil {
			return nil, fmt.Errorf("chart %s: %w", c.Name, err)
		}
	}
	return svgs, nil
}

// series is what a chart has of one library.
type series struct {
	library string
	points  plotter.XYs
}

func (s series) last() float64 { return s.points[len(s.points)-1].Y }

// series returns what there is to show, the largest first, which is the order from top to
// bottom.
func (c Chart) series(r *Report) []series {
	var all []series
	for _, l := range c.Scenario.Libraries {
		if c.Woken && l.Role == contender.Rival {
			continue
		}
		s := series{library: l.Name}
		for _, i := range c.Rows {
			load, x := c.Scenario.Loads[i], 0.
			if c.X != nil {
				x = c.X(i)
			}
			if v, ok := r.find(c.Scenario, load, l.Name).median(c.Unit); ok && v > 0 {
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
func (c Chart) lines(l Layout, all []series) (*picture, error) {
	p := newPicture(c.Title, c.Label)
	p.X.Label.Text = c.Axis
	var ticks []plot.Tick
	for _, i := range c.Rows {
		x := c.X(i)
		label := short(x)
		if c.Tick != nil {
			label = c.Tick(i)
		}
		ticks = append(ticks, plot.Tick{Value: x, Label: label})
	}
	p.X.Scale, p.X.Tick.Marker = plot.LogScale{}, plot.ConstantTicks(ticks)
	p.X.Min, p.X.Max = ticks[0].Value, ticks[len(ticks)-1].Value // also of rows that were left out
	for _, s := range all {
		if err := p.line(l.style(s.library), s.points); err != nil {
			return nil, err
		}
	}
	wholeDecades(&p.Y)
	return p, nil
}

// dots has a row for each library, with its figure; the smallest, which is the best, is
// on top.
func (c Chart) dots(l Layout, all []series) (*picture, error) {
	p := newPicture(c.Title, c.Label)
	var names []string
	for i, s := range all {
		names = append(names, l.style(s.library).Label)
		if err := p.dot(l.style(s.library), plotter.XY{X: s.last(), Y: float64(i)}); err != nil {
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
