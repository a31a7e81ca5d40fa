package report

import (
	"bytes"
	"fmt"
	"path"
	"strings"
)

// Where the figures of the README begin and end.
var (
	figuresBegin = []byte("<!-- figures: written by bench/cmd/report -->\n")
	figuresEnd   = []byte("<!-- /figures -->")
)

// headline is a line of the README's table.
type headline struct {
	text     string
	scenario scenario
	row      int
	unit     string
}

var headlines = []headline{
	{"a free lock, 1 goroutine: pairs/s", uncontended, 0, unitRate},
	{"16 goroutines, each with a lock of its own: pairs/s", distinct, 1, unitRate},
	{"1,000 goroutines, each with a lock of its own: pairs/s", distinct, 3, unitRate},
	{"one lock, 16 goroutines: pairs/s", oneName, 1, unitRate},
	{"one lock, 4 processes: pairs/s", processes, 1, unitRate},
	{"one lock, 4 processes: commands per pair", processes, 1, unitCommands},
	{"one lock, 4 processes of 16 goroutines: pairs/s", processes, 4, unitRate},
	{"hand-over to a process that waits: median µs", handover, 0, unitHandover + unitP50},
	{"100 callers, 4 processes, 1 ms of work: longest wait ÷ mean", queue, 0, unitLongest},
	{"fair lock, 1,000 in the queue: server µs per hand-over", fair, 1, unitServer},
	{"90 % readers, 1 ms of work: sections/s", readers, 1, unitRate},
	{"10,000 locks held: commands per lock and 1/3 lease", held, 1, unitRenewals},
	{"10,000 waiting: commands/s", parked, 1, unitPerSecond},
}

// RefreshREADME puts the headlines and the charts between the marks of a README; file is
// where the whole report was written, seen from there.
func (r *Report) RefreshREADME(readme []byte, file string) ([]byte, error) {
	head, rest, ok := bytes.Cut(readme, figuresBegin)
	if !ok {
		return nil, fmt.Errorf("the README has no line %q", bytes.TrimSpace(figuresBegin))
	}
	_, tail, ok := bytes.Cut(rest, figuresEnd)
	if !ok {
		return nil, fmt.Errorf("the README has no line %q", figuresEnd)
	}
	var b bytes.Buffer
	b.Write(head)
	b.Write(figuresBegin)
	p := &printer{w: &b}
	p.f("\n## Figures\n\nMedians of [%s](%s), which has the machine, the method and all the rest; `make bench` measures again.\n", path.Base(file), file)
	p.f("%d cores, %s. A lock that is handed over without any work under it shows the hand-over alone: do not expect its ratio of a real section. ", r.Machine.Cores, r.Machine.Placement)
	p.f("Jain's index is given where a rival leaves callers without their turn: 1 if all get the same, 1/n if one of n gets all. A time beside redislock is its pause between two polls.\n\n")
	p.headlines(r)
	for _, c := range charts {
		if len(c.series(r)) > 0 { // two beside each other, on white in either theme
			p.f("<img src=\"%s\" width=\"49%%\" alt=\"%s: %s\">\n", ChartFile(file, c.name), c.title, c.label)
		}
	}
	p.f("\n")
	if p.err != nil {
		return nil, p.err
	}
	b.Write(figuresEnd)
	b.Write(tail)
	return b.Bytes(), nil
}

// ChartFile is where the chart of a report belongs, beside its Markdown file.
func ChartFile(file, chart string) string {
	return strings.TrimSuffix(file, path.Ext(file)) + "-" + chart + ".svg"
}

func (p *printer) headlines(r *Report) {
	p.head("case", "holdfast", "best rival", "better by")
	lost := false
	for _, h := range headlines {
		row := h.scenario.rows[h.row]
		us, best := r.find(h.scenario, row, h.scenario.ours()), r.bestRival(h.scenario, row)
		v, ok := us.median(h.unit)
		if !ok {
			continue
		}
		cells := []string{h.text, number(v), "-", "-"}
		if b, ok := best.median(h.unit); ok {
			cells[2] = number(b) + " (" + styleOf(best.Library).label + unfairness(best) + ")"
			all := ratios(us, best, h.unit)
			if !more(h.unit) {
				all = ratios(best, us, h.unit)
			}
			if len(all) > 0 {
				cells[3] = number(median(all)) + " ×"
				if median(all) < .95 {
					cells[3] = "**" + cells[3] + "**"
					lost = true
				}
			}
		}
		p.row(cells...)
	}
	p.f("\n")
	if lost {
		p.f("Where the last column is bold we lose, by more than a twentieth; the report lists every metric in which we are behind.\n\n")
	}
}

// unfairness tells of a rival that is quick because it leaves some without their turn.
func unfairness(r *Result) string {
	if jain, ok := r.median(unitJain); ok && jain < .9 {
		return fmt.Sprintf(", Jain %.2f", jain)
	}
	return ""
}
