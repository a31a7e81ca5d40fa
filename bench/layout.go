package bench

import "github.com/holdfast-go/holdfast/bench/internal/report"

// Layout is how a report is shown.
func Layout() report.Layout {
	l := report.Layout{Headlines: headlines, Sentences: sentences, Charts: charts, Styles: styles}
	for _, s := range scenarios {
		l.Scenarios = append(l.Scenarios, s.asked())
	}
	return l
}
