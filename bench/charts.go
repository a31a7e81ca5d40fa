package bench

import (
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/holdfast-go/holdfast/bench/internal/contender"
	"github.com/holdfast-go/holdfast/bench/internal/report"
)

// charts tell the story in five pictures: where locks change hands among processes, and
// what that costs; how long the lock has no holder; how long callers wait; and, last,
// where no caller waits and Holdfast leads by less or not at all.
var charts = []report.Chart{
	{
		Name: "processes", Title: "One lock, 16 goroutines in each process", Axis: "processes", Label: "Lock and Unlock, pairs per second",
		Scenario: processes.asked(), Rows: []int{3, 4, 5}, Unit: unitRate, X: processCount,
	}, {
		Name: "commands", Title: "The same: what it costs Redis", Axis: "processes", Label: "commands per pair of Lock and Unlock; less is better",
		Scenario: processes.asked(), Rows: []int{3, 4, 5}, Unit: unitCommands, X: processCount,
	}, {
		Name: "handover", Title: "Hand-over to a process that waits", Label: "µs from Unlock to the return of Lock, median; less is better",
		// A poller's figure is of the few times when it got in between Unlock and the
		// next Lock of the same process, which are quick and say nothing.
		Scenario: handover.asked(), Rows: []int{0}, Unit: unitHandover + unitP50, Woken: true,
	}, {
		Name: "queue", Title: "100 callers, 4 processes, 1 ms of work", Label: "the longest wait ÷ the wait if all took turns; 1 is best",
		Scenario: queue.asked(), Rows: []int{0}, Unit: unitLongest,
	}, {
		Name: "distinct", Title: "One process, each goroutine has a lock of its own", Axis: "goroutines", Label: "Lock and Unlock, pairs per second",
		Scenario: distinct.asked(), Rows: []int{0, 1, 2, 3, 4}, Unit: unitRate, X: func(row int) float64 { return float64(distinct.rows[row].n) },
	}, {
		Name: "linger", Title: "One lock, and calls of two processes one after the other", Axis: "calls of the other process", Label: "Lock and Unlock, pairs per second",
		Scenario: linger.asked(), Rows: []int{0, 1, 2, 3}, Unit: unitRate, X: apart, Tick: func(row int) string { return percent(linger.rows[row].others) },
	},
}

// apart has the rows of linger at equal distances: the first share is 0.
func apart(row int) float64 { return float64(int(1) << row) }

func processCount(row int) float64 { return float64(processes.rows[row].procs) }

// styles have colours of those of Okabe and Ito, for people of any sight.
var styles = map[string]report.Style{
	contender.Ours:      {Label: "Holdfast", Colour: 0x0072b2, Shape: draw.CircleGlyph{}, Bold: true},
	contender.Lingering: {Label: "Holdfast, WithLinger", Colour: 0x0072b2, Shape: diamond{}, Bold: true},
	"redsync":           {Label: "redsync", Colour: 0xe69f00, Shape: draw.SquareGlyph{}},
	"redislock":         {Label: "redislock, 100 ms", Colour: 0x009e73, Shape: draw.TriangleGlyph{}},
	"redislock-1ms":     {Label: "redislock, 1 ms", Colour: 0x56b4e9, Shape: draw.PyramidGlyph{}},
	"rueidislock":       {Label: "rueidislock", Colour: 0xd55e00, Shape: draw.CrossGlyph{}},
	"redisson":          {Label: "Redisson", Colour: 0xcc79a7, Shape: draw.BoxGlyph{}},
	"message":           {Label: "a bare message", Colour: 0x000000, Shape: draw.PlusGlyph{}},
	"grant":             {Label: "the least grant", Colour: 0x666666, Shape: draw.PlusGlyph{}},
	"least":             {Label: "the least lock", Colour: 0x000000, Shape: lozenge{}},
	"r8-pubsub":         {Label: "by hand, pub/sub", Colour: 0x666666, Shape: draw.RingGlyph{}},
}

// diamond is a shape that package draw has not, and lozenge its outline.
type (
	diamond struct{}
	lozenge struct{}
)

// DrawGlyph is a method of draw.GlyphDrawer.
func (diamond) DrawGlyph(c *draw.Canvas, style draw.GlyphStyle, at vg.Point) {
	c.SetColor(style.Color)
	c.Fill(rhombus(style.Radius, at))
}

// DrawGlyph is a method of draw.GlyphDrawer.
func (lozenge) DrawGlyph(c *draw.Canvas, style draw.GlyphStyle, at vg.Point) {
	c.SetLineStyle(draw.LineStyle{Color: style.Color, Width: vg.Points(.5)})
	c.Stroke(rhombus(style.Radius, at))
}

func rhombus(r vg.Length, at vg.Point) vg.Path {
	var p vg.Path
	p.Move(vg.Point{X: at.X, Y: at.Y + r})
	p.Line(vg.Point{X: at.X + r, Y: at.Y})
	p.Line(vg.Point{X: at.X, Y: at.Y - r})
	p.Line(vg.Point{X: at.X - r, Y: at.Y})
	p.Close()
	return p
}

// sentences are the README's: the best case first, and those in which Holdfast is slowest, by machine, last.
var sentences = []report.Sentence{
	{
		Headline: report.Headline{Text: "pairs of Lock and Unlock", Scenario: processes.asked(), Row: 4, Unit: unitRate},
		Ahead:    "Holdfast gains most where many callers want one lock, here 16 goroutines in each of 4 processes",
		Behind:   "Holdfast loses where many callers want one lock, here 16 goroutines in each of 4 processes",
	}, {
		Headline: report.Headline{Text: "pairs", Scenario: processes.asked(), Row: 1, Unit: unitRate},
		Ahead:    "It gains little where each of 4 processes has one caller",
		Behind:   "It loses where each of 4 processes has one caller",
	}, {
		Headline: report.Headline{Text: "pairs", Scenario: uncontended.asked(), Row: 0, Unit: unitRate},
		Ahead:    "It gains least where a single caller takes a free lock",
		Behind:   "It loses where a single caller takes a free lock",
	}, {
		Headline: report.Headline{Text: "pairs", Scenario: distinct.asked(), Row: 1, Unit: unitRate},
		Ahead:    "On the machine of the last report it gains where each of 16 goroutines has a lock of its own",
		Behind:   "On the machine of the last report it loses where each of 16 goroutines has a lock of its own",
	},
}

// headlines are the table of docs/PERFORMANCE.md.
var headlines = []report.Headline{
	{Text: "a free lock, 1 goroutine: pairs/s", Scenario: uncontended.asked(), Row: 0, Unit: unitRate},
	{Text: "16 goroutines, each with a lock of its own: pairs/s", Scenario: distinct.asked(), Row: 1, Unit: unitRate},
	{Text: "1,000 goroutines, each with a lock of its own: pairs/s", Scenario: distinct.asked(), Row: 3, Unit: unitRate},
	{Text: "one lock, 16 goroutines: pairs/s", Scenario: oneName.asked(), Row: 1, Unit: unitRate},
	{Text: "one lock, 4 processes: pairs/s", Scenario: processes.asked(), Row: 1, Unit: unitRate},
	{Text: "one lock, 4 processes: commands per pair", Scenario: processes.asked(), Row: 1, Unit: unitCommands},
	{Text: "one lock, 4 processes of 16 goroutines: pairs/s", Scenario: processes.asked(), Row: 4, Unit: unitRate},
	{Text: "hand-off to a process that waits: median µs", Scenario: handover.asked(), Row: 0, Unit: unitHandover + unitP50},
	{Text: "the same where Redis is a round trip of 2 ms away", Scenario: handover.asked(), Row: 1, Unit: unitHandover + unitP50},
	{Text: "100 callers, 4 processes, 1 ms of work: longest wait ÷ mean", Scenario: queue.asked(), Row: 0, Unit: unitLongest},
	{Text: "fair lock, 1,000 in the queue: server µs per hand-off", Scenario: fair.asked(), Row: 1, Unit: unitServer},
	{Text: "90 % readers, 1 ms of work: sections/s", Scenario: readers.asked(), Row: 1, Unit: unitRate},
	{Text: "10,000 locks held: commands per lock and 1/3 lease", Scenario: held.asked(), Row: 1, Unit: unitRenewals},
	{Text: "10,000 waiting: commands/s", Scenario: parked.asked(), Row: 1, Unit: unitPerSecond},
	{Text: "a free permit, 1 goroutine: pairs/s", Scenario: permitFree.asked(), Row: 0, Unit: unitRate},
	{Text: "8 permits, 64 goroutines: pairs/s", Scenario: permitCrowd.asked(), Row: 0, Unit: unitRate},
	{Text: "8 permits, 4 processes of 16 goroutines: pairs/s", Scenario: permitCrowd.asked(), Row: 1, Unit: unitRate},
	{Text: "a permit goes to a process that waits: median µs", Scenario: permitHandover.asked(), Row: 0, Unit: unitHandover + unitP50},
	{Text: "an election, from `Resign` to the next leader: median µs", Scenario: election.asked(), Row: 0, Unit: unitHandover + unitP50},
	{Text: "`Wanted`, after another process has called `Lock`: median µs", Scenario: wanted.asked(), Row: 0, Unit: unitP50},
}
