package demo

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"
)

// PrintHeader writes what is about to be run.
func (s *Sale) PrintHeader(w io.Writer) error {
	guard := "one lock, " + s.shop.lock
	if s.cfg.Unsafe {
		guard = "nothing (--unsafe)"
	}
	place := fmt.Sprintf("%s, database %d", s.addr, s.db)
	if s.server != nil {
		place = "embedded server at " + s.addr
	}
	_, err := fmt.Fprintf(w, "Flash sale: %s, %s, %s, %v per purchase\nRedis:      %s\nGuarded by: %s\n",
		count(s.cfg.Buyers, "buyer"), count(s.cfg.Processes, "process"), count(s.cfg.Stock, "phone"),
		s.cfg.Hold, place, guard)
	return err
}

// Print writes who bought what in which order, and the sums.
func (r *Result) Print(w io.Writer) error {
	var b bytes.Buffer // written at once: a reader that went away is one error
	b.WriteByte('\n')
	r.printSales(&b)
	r.printSummary(&b)
	_, err := w.Write(b.Bytes())
	return err
}

func (r *Result) printSales(w io.Writer) {
	if len(r.Receipts) == 0 {
		fmt.Fprint(w, "No sales.\n\n")
		return
	}
	waited := make(map[int]string, len(r.Outcomes))
	for _, o := range r.Outcomes {
		waited[o.Buyer] = short(o.Waited).String()
		if r.Unsafe {
			waited[o.Buyer] = "-"
		}
	}
	again := make(map[int]bool)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(t, "sale\tphone\tbuyer\tprocess\twaited\tleft\t\n")
	for i, x := range r.Receipts {
		fmt.Fprintf(t, "%d\t%d\t%d\t%d\t%s\t%d\t", i+1, x.Phone, x.Buyer, x.Process, waited[x.Buyer], x.Left)
		if again[x.Phone] {
			fmt.Fprint(t, "  sold already!")
		}
		again[x.Phone] = true
		fmt.Fprintln(t)
	}
	_ = t.Flush() // into memory
	fmt.Fprintln(w)
}

func (r *Result) printSummary(w io.Writer) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	row := func(label, format string, args ...any) {
		fmt.Fprintf(t, "%s\t%s\n", label, fmt.Sprintf(format, args...))
	}
	sold := len(r.Receipts)
	row("buyers", "%d, served in %v", len(r.Outcomes), short(r.Took))
	row("sold", "%d", sold)
	if r.Unsafe {
		row("oversold", "%d of these are of a phone that was sold already", r.Oversold())
	}
	row("sold out", "%s went home without", count(len(r.Outcomes)-sold, "buyer"))
	if low := r.lowest(); low < 0 {
		row("stock left", "%d, AND IT FELL TO %d", r.Left, low)
	} else {
		row("stock left", "%d, and it never fell below zero", r.Left)
	}
	verdict := "they agree"
	if len(r.Disagreements()) > 0 {
		verdict = "THEY DISAGREE"
	}
	row("stock and sales", "%d sold + %d left, %d at the beginning: %s", sold, r.Left, r.Stock, verdict)
	if !r.Unsafe {
		waits := r.waits()
		row("waits for the lock", "p50 %v, p99 %v, max %v",
			short(percentile(waits, 50)), short(percentile(waits, 99)), short(percentile(waits, 100)))
		row("handed over", "%s to the next buyer of the same process, without Redis", count(int(r.Figures.HandedOff), "time"))
		row("Redis commands per acquisition", "%.2f: %s by the lock in all processes / %s; subscriptions not counted",
			float64(r.Figures.Commands)/float64(max(len(r.Outcomes), 1)),
			count(int(r.Figures.Commands), "script call"), count(len(r.Outcomes), "acquisition"))
	}
	_ = t.Flush() // into memory
}

// count is a number of things: "1 phone", "10 phones".
func count(n int, thing string) string {
	switch {
	case n == 1:
	case strings.HasSuffix(thing, "s"):
		thing += "es"
	default:
		thing += "s"
	}
	return fmt.Sprintf("%d %s", n, thing)
}

// short rounds to what a person reads.
func short(d time.Duration) time.Duration {
	switch {
	case d < time.Millisecond:
		return d.Round(time.Microsecond)
	case d < time.Second:
		return d.Round(100 * time.Microsecond)
	}
	return d.Round(time.Millisecond)
}
