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

// RefreshREADME puts headlines and charts of a report between the marks of a README;
// file is where the whole report was written, seen from there.
func (l Layout) RefreshREADME(readme []byte, r *Report, file string) ([]byte, error) {
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
	p.f("Jain's index is given where a rival leaves callers without their turn: 1 if all get the same, 1/n if one of n gets all. A time beside redislock is its pause between two polls. The last column is the median of the ratios within each round, which need not be the ratio of the two medians.\n\n")
	p.headlines(r, l)
	for _, c := range l.Charts {
		if len(c.series(r)) > 0 { // two beside each other, on white in either theme
			p.f("<img src=\"%s\" width=\"49%%\" alt=\"%s: %s\">\n", ChartFile(file, c.Name), c.Title, c.Label)
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

func (p *printer) headlines(r *Report, l Layout) {
	p.head("case", "holdfast", "best rival", "better by")
	lost := false
	for _, h := range l.Headlines {
		load := h.Scenario.Loads[h.Row]
		us, best := r.find(h.Scenario, load, h.Scenario.Ours), r.best(h.Scenario, load, h.Unit, !more(h.Unit), rivals)
		v, ok := us.median(h.Unit)
		if !ok {
			continue
		}
		cells := []string{h.Text, number(v), "-", "-"}
		if b, ok := best.median(h.Unit); ok {
			cells[2] = number(b) + " (" + l.style(best.Library).Label + unfairness(best) + ")"
			all := ratios(us, best, h.Unit)
			if !more(h.Unit) {
				all = ratios(best, us, h.Unit)
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
		p.f("Where the last column is bold we lose, by more than a twentieth. The report lists for each case in which other metrics its best rival is ahead by as much; what the others reach is in its tables.\n\n")
	}
}

// unfairness tells of a rival that is quick because it leaves some without their turn.
func unfairness(r *Result) string {
	if jain, ok := r.median(Jain); ok && jain < .9 {
		return fmt.Sprintf(", Jain %.2f", jain)
	}
	return ""
}
