package report

import (
	"image/color"

	"gonum.org/v1/plot/vg/draw"

	"github.com/holdfast-go/holdfast/bench/internal/contender"
)

// Layout is what is shown of a report.
type Layout struct {
	Scenarios []Scenario
	Headlines []Headline
	Sentences []Sentence
	Charts    []Chart
	Styles    map[string]Style // by library
}

// Scenario is one question that was put to several libraries under several loads.
type Scenario struct {
	Name      string
	Question  string
	Loads     []string
	Libraries []contender.Library
	Ours      string   // the library that is compared with the others
	Floor     string   // what no lock can be below; empty: nothing is known to be
	Headline  string   // the unit of the metric that decides
	Smaller   bool     // whether less of it is better
	Shown     []string // units in tables
}

// Headline is a line of the table of docs/PERFORMANCE.md.
type Headline struct {
	Text     string
	Scenario Scenario
	Row      int // of its loads
	Unit     string
}

// Sentence is one of the README's about a headline: where Holdfast is ahead or behind, and what is counted there.
type Sentence struct {
	Headline
	Ahead, Behind string
}

// Chart is a picture of one metric of a scenario, on a logarithmic axis: one library's
// figure is often ten or a hundred times another's.
type Chart struct {
	Name     string // of the file
	Title    string
	Axis     string // what differs between the rows
	Label    string // the metric in words
	Scenario Scenario
	Rows     []int // of its loads: points of a line for each library, or a dot for each if it is one
	Unit     string
	Woken    bool // leave out who polls
	X        func(row int) float64
	Tick     func(row int) string // what stands at X; nil: X itself
}

// Style is how a library looks in every picture: told apart by its shape as well as by
// its colour.
type Style struct {
	Label  string
	Colour uint32 // 0xRRGGBB
	Shape  draw.GlyphDrawer
	Bold   bool
}

// style is for libraries without a style of their own as well.
func (l Layout) style(library string) Style {
	if s, ok := l.Styles[library]; ok {
		return s
	}
	return Style{Label: library, Shape: draw.PlusGlyph{}}
}

func rgb(hex uint32) color.RGBA {
	return color.RGBA{R: uint8(hex >> 16), G: uint8(hex >> 8), B: uint8(hex), A: 255}
}

// Units of which a report knows more than the name.
const (
	Overlaps  = "violations" // only there where exclusion was checked
	Jain      = "jain"       // Jain's fairness index over callers
	JainProcs = "jain-procs" // and over processes
	PerSecond = "redis-cmds/s"
)
