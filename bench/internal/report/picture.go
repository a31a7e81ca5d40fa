package report

import (
	"bytes"
	"image/color"
	"math"

	xfont "golang.org/x/image/font"
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

func (s Style) line() draw.LineStyle {
	width := vg.Points(1.25)
	if s.Bold {
		width = vg.Points(3)
	}
	return draw.LineStyle{Color: rgb(s.Colour), Width: width}
}

func (s Style) glyph() draw.GlyphStyle {
	return draw.GlyphStyle{Color: rgb(s.Colour), Radius: vg.Points(3.5), Shape: s.Shape}
}

const (
	pictureWidth, pictureHeight = 15 * vg.Centimeter, 8.5 * vg.Centimeter
	legendWidth                 = 4.3 * vg.Centimeter
	margin                      = 0.3 * vg.Centimeter
	textSize, titleSize         = 11, 13 // points: a README shows it at three quarters
)

// sans is drawn with whatever the reader has of the kind: an image cannot bring a font.
const (
	sans     = "Liberation Sans"
	anySans  = sans + ",Arial,Helvetica,sans-serif"
	light    = 0xdddddd
	darkText = 0x222222
)

// picture is a plot with two lines above it and its legend beside it, on white, which is
// readable on a dark page too.
type picture struct {
	*plot.Plot
	title, metric string
	legend        plot.Legend
	named         bool // whether the legend has anything
}

func letters(s *text.Style, size vg.Length) {
	s.Font = font.From(font.Font{Typeface: "Liberation", Variant: "Sans"}, size)
	s.Color = rgb(darkText)
}

func newPicture(title, metric string) *picture {
	p := &picture{Plot: plot.New(), legend: plot.NewLegend(), title: title, metric: metric}
	letters(&p.legend.TextStyle, textSize)
	for _, a := range []*plot.Axis{&p.X, &p.Y} {
		letters(&a.Label.TextStyle, textSize)
		letters(&a.Tick.Label, textSize)
		a.Label.Padding = vg.Points(4)
	}
	p.legend.Left, p.legend.Top = true, true
	p.legend.Padding, p.legend.ThumbnailWidth = vg.Points(5), vg.Points(24)
	grid := plotter.NewGrid()
	grid.Horizontal.Color, grid.Vertical.Color = rgb(light), rgb(light)
	p.Add(grid)
	return p
}

// line adds a library to the plot and to its legend.
func (p *picture) line(s Style, points plotter.XYs) error {
	line, dots, err := plotter.NewLinePoints(points)
	if err != nil {
		return err
	}
	line.LineStyle, dots.GlyphStyle = s.line(), s.glyph()
	p.Add(line, dots)
	p.legend.Add(s.Label, line, dots)
	p.named = true
	return nil
}

// dot adds a dot with its figure.
func (p *picture) dot(s Style, at plotter.XY) error {
	dots, err := plotter.NewScatter(plotter.XYs{at})
	if err != nil {
		return err
	}
	dots.GlyphStyle = s.glyph()
	dots.GlyphStyle.Radius = vg.Points(5)
	figure, err := plotter.NewLabels(plotter.XYLabels{XYs: plotter.XYs{at}, Labels: []string{number(at.X)}})
	if err != nil {
		return err
	}
	figure.TextStyle[0] = p.legend.TextStyle
	figure.TextStyle[0].YAlign = -0.4
	figure.Offset = vg.Point{X: vg.Points(9)}
	p.Add(dots, figure)
	return nil
}

// svg draws the picture. The title and the metric are not the plot's: it would centre
// them over the axes, and write along the vertical one.
func (p *picture) svg() ([]byte, error) {
	canvas := vgsvg.New(pictureWidth, pictureHeight)
	all := draw.New(canvas)
	all.SetColor(color.White)
	all.Fill(all.Rectangle.Path())
	in := draw.Crop(all, margin, -margin, margin, -margin)
	for _, head := range []struct {
		text   string
		size   vg.Length
		weight xfont.Weight
	}{{p.title, titleSize, xfont.WeightBold}, {p.metric, textSize, xfont.WeightNormal}} {
		style := p.Title.TextStyle
		letters(&style, head.size)
		style.Font.Weight, style.XAlign = head.weight, draw.XLeft
		in.FillText(style, vg.Point{X: in.Min.X, Y: in.Max.Y}, head.text)
		in.Max.Y -= head.size * 1.5
	}
	in.Max.Y -= margin
	if p.named {
		p.legend.Draw(draw.Crop(in, in.Size().X-legendWidth, 0, 0, 0))
		in.Max.X -= legendWidth + margin
	}
	p.Plot.Draw(in)
	var b bytes.Buffer
	if _, err := canvas.WriteTo(&b); err != nil {
		return nil, err
	}
	return bytes.ReplaceAll(b.Bytes(), []byte("font-family:"+sans+";"), []byte("font-family:"+anySans+";")), nil
}

// decades are the ticks of a logarithmic axis; powers of ten are written out.
type decades struct{}

func (decades) Ticks(least, most float64) []plot.Tick {
	var ticks []plot.Tick
	for exp := math.Round(math.Log10(least)); ; exp++ {
		power := math.Pow(10, exp)
		ticks = append(ticks, plot.Tick{Value: power, Label: short(power)})
		if power > most*.99 {
			return ticks
		}
		for i := 2.; i < 10; i++ {
			ticks = append(ticks, plot.Tick{Value: power * i})
		}
	}
}

// short writes thousands and millions as people do on an axis.
func short(v float64) string {
	switch {
	case v >= 1e6:
		return english.Sprintf("%.0f", v/1e6) + "M"
	case v >= 1e3:
		return english.Sprintf("%.0f", v/1e3) + "k"
	case v >= 1:
		return english.Sprintf("%.0f", v)
	default:
		return number(v)
	}
}
