package report

import (
	"bytes"
	"fmt"
	"path"
	"slices"
	"strings"
)

// Where the figures of a page begin and end.
var (
	figuresBegin = []byte("<!-- figures: written by bench/cmd/report -->\n")
	figuresEnd   = []byte("<!-- /figures -->")
)

// RefreshREADME puts one chart and a few sentences between the marks of the README; file is where
// the whole report was written, seen from there.
func (l Layout) RefreshREADME(readme []byte, r *Report, file string) ([]byte, error) {
	p := new(printer)
	p.sentences(r, l)
	for _, c := range l.Charts[:min(1, len(l.Charts))] {
		p.chart(r, c, file)
	}
	return betweenMarks(readme, p.Bytes())
}

// RefreshPage puts the table of headlines and all charts between the marks of a page.
func (l Layout) RefreshPage(page []byte, r *Report, file string) ([]byte, error) {
	p := new(printer)
	p.f("\nThe figures are medians of [%s](%s). %d cores, %s.\n\n", path.Base(file), file, r.Machine.Cores, r.Machine.Placement)
	p.headlines(r, l)
	for _, c := range l.Charts {
		p.chart(r, c, file)
	}
	p.f("\n")
	return betweenMarks(page, p.Bytes())
}

// betweenMarks replaces what is between the marks of a text.
func betweenMarks(text, figures []byte) ([]byte, error) {
	head, rest, ok := bytes.Cut(text, figuresBegin)
	if !ok {
		return nil, fmt.Errorf("there is no line %q", bytes.TrimSpace(figuresBegin))
	}
	_, tail, ok := bytes.Cut(rest, figuresEnd)
	if !ok {
		return nil, fmt.Errorf("there is no line %q", figuresEnd)
	}
	return slices.Concat(head, figuresBegin, figures, figuresEnd, tail), nil
}

// chart shows a chart, two beside each other, on white in either theme. It shows nothing if no library was measured.
func (p *printer) chart(r *Report, c Chart, file string) {
	if len(c.series(r)) > 0 {
		p.f("<img src=\"%s\" width=\"49%%\" alt=\"%s: %s\">\n", ChartFile(file, c.Name), c.Title, c.Label)
	}
}

// ChartFile is where the chart of a report belongs, beside its Markdown file.
func ChartFile(file, chart string) string {
	return strings.TrimSuffix(file, path.Ext(file)) + "-" + chart + ".svg"
}

// compared is a headline's figures. Without a rival best is nil.
func (h Headline) compared(r *Report) (us, best *Result, ok bool) {
	load := h.Scenario.Loads[h.Row]
	us, best = r.find(h.Scenario, load, h.Scenario.Ours), r.bestRival(h.Scenario, load, h.Unit, !more(h.Unit))
	if _, found := best.median(h.Unit); !found {
		best = nil
	}
	_, ok = us.median(h.Unit)
	return us, best, ok
}

// lead is how many times better the first of two medians is, and whether the rounds say so as well: where the median of
// the ratios within each round is on the other side of 1, neither library leads.
func (h Headline) lead(us, best *Result) (ratio float64, level bool) {
	if !more(h.Unit) {
		us, best = best, us
	}
	a, _ := us.median(h.Unit)
	b, _ := best.median(h.Unit)
	ratio = a / b
	all := ratios(us, best, h.Unit)
	return ratio, len(all) > 0 && (ratio-1)*(median(all)-1) < 0
}

func (p *printer) sentences(r *Report, l Layout) {
	for _, s := range l.Sentences {
		us, best, ok := s.compared(r)
		if !ok || best == nil {
			continue
		}
		ahead, _ := s.lead(us, best)
		verb := s.Ahead
		if ahead < 1 {
			verb = s.Behind
		}
		ours, _ := us.median(s.Unit)
		theirs, _ := best.median(s.Unit)
		p.f("- %s: %s %s per second; %s: %s.\n", verb, number(ours), s.Text, l.style(best.Library).Label, number(theirs))
	}
	p.f("\n")
}

func (p *printer) headlines(r *Report, l Layout) {
	p.head("case", "Holdfast", "best rival", "its figure", "Holdfast is better by")
	for _, h := range l.Headlines {
		us, best, ok := h.compared(r)
		if !ok {
			continue
		}
		v, _ := us.median(h.Unit)
		cells := []string{h.Text, number(v), "-", "-", "-"}
		if best != nil {
			b, _ := best.median(h.Unit)
			cells[2], cells[3] = l.style(best.Library).Label+unfairness(best), number(b)
			switch ratio, level := h.lead(us, best); {
			case level:
				cells[4] = "level"
			case ratio < .95:
				cells[4] = "**" + number(ratio) + " ×**"
			default:
				cells[4] = number(ratio) + " ×"
			}
		}
		p.row(cells...)
	}
	p.f("\n")
}

// unfairness tells of a rival that is quick because it leaves some without their turn.
func unfairness(r *Result) string {
	if jain, ok := r.median(Jain); ok && jain < .9 {
		return fmt.Sprintf(" (Jain %.2f)", jain)
	}
	return ""
}
