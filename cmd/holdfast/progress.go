package main

import (
	"fmt"
	"io"
	"os"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"
)

// progress shows on stderr how far the sale has come: a bar on a terminal, elsewhere a
// line now and then, which a short sale does not need.
type progress struct {
	w             io.Writer
	buyers, stock int
	bar           *progressbar.ProgressBar // nil: no terminal
	next          time.Time                // of the next line
}

// lineEvery is the time between two lines.
const lineEvery = 2 * time.Second

func newProgress(w io.Writer, buyers, stock int) *progress {
	p := &progress{w: w, buyers: buyers, stock: stock, next: time.Now().Add(lineEvery)}
	if f, ok := w.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		p.bar = progressbar.NewOptions(buyers,
			progressbar.OptionSetWriter(w),
			progressbar.OptionSetWidth(30),
			progressbar.OptionShowCount(),
			progressbar.OptionSetDescription("buyers served"),
			progressbar.OptionSetPredictTime(false),
			progressbar.OptionThrottle(50*time.Millisecond),
			progressbar.OptionClearOnFinish(),
		)
	}
	return p
}

// advance is a demo.Progress. What a terminal makes of it is not worth an error.
func (p *progress) advance(served, sold int) {
	if p.bar != nil {
		p.bar.Describe(fmt.Sprintf("%d of %d phones sold, buyers served", sold, p.stock))
		_ = p.bar.Set(served)
		return
	}
	if now := time.Now(); !now.Before(p.next) {
		p.next = now.Add(lineEvery)
		fmt.Fprintf(p.w, "%d of %d buyers served, %d of %d phones sold\n", served, p.buyers, sold, p.stock)
	}
}

// done removes the bar: what comes next says more.
func (p *progress) done() {
	if p.bar != nil {
		_ = p.bar.Clear()
	}
}
