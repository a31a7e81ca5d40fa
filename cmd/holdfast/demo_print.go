package main

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
	"time"
)

// print writes who bought what in which order, and the sums. It writes at once: a reader that went away is one error.
func (s *sale) print(w io.Writer, sold []receipt, left int, buyers []served) error {
	var text bytes.Buffer
	if len(sold) == 0 {
		fmt.Fprintln(&text, "No sales.")
	} else {
		s.printSales(&text, sold)
	}
	fmt.Fprintln(&text)
	var all served
	for _, b := range buyers {
		all.Waits, all.Commands, all.HandedOff = append(all.Waits, b.Waits...), all.Commands+b.Commands, all.HandedOff+b.HandedOff
		all.Took = max(all.Took, b.Took)
	}
	slices.Sort(all.Waits)
	t := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	row := func(label, format string, args ...any) {
		fmt.Fprintf(t, "%s\t%s\n", label, fmt.Sprintf(format, args...))
	}
	row("buyers", "%d, served in %v", len(all.Waits), short(all.Took))
	row("sold", "%d", len(sold))
	if s.Unsafe {
		row("oversold", "%d of these are of a phone that was sold already", soldTwice(sold))
	}
	row("sold out", "%d went home without", len(all.Waits)-len(sold))
	if lowest := min(left, slices.MinFunc(append(sold, receipt{Left: left}), func(a, b receipt) int { return a.Left - b.Left }).Left); lowest < 0 {
		row("stock left", "%d, AND IT FELL TO %d", left, lowest)
	} else {
		row("stock left", "%d, and it never fell below zero", left)
	}
	verdict := "they agree"
	if len(s.wrong(sold, left, buyers)) > 0 {
		verdict = "THEY DISAGREE"
	}
	row("stock and sales", "%d sold + %d left, %d at the beginning: %s", len(sold), left, s.Stock, verdict)
	if n := len(all.Waits); !s.Unsafe && n > 0 {
		row("waits for the lock", "p50 %v, p99 %v, max %v", short(all.Waits[n/2]), short(all.Waits[n*99/100]), short(all.Waits[n-1]))
		row("handed over", "%d times to the next buyer of the same process, without Redis", all.HandedOff)
		row("Redis commands per acquisition", "%.2f: %d by the lock in all processes / %d acquisitions", float64(all.Commands)/float64(n), all.Commands, n)
	}
	_ = t.Flush() // into memory
	_, err := text.WriteTo(w)
	return err
}

func (s *sale) printSales(w io.Writer, sold []receipt) {
	again := make(map[int]bool)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(t, "sale\tphone\tbuyer\tprocess\twaited\tleft\t\n")
	for i, r := range sold {
		note := ""
		if again[r.Phone] {
			note = "  sold already!"
		}
		again[r.Phone] = true
		fmt.Fprintf(t, "%d\t%d\t%d\t%d\t%v\t%d\t%s\n", i+1, r.Phone, r.Buyer, r.Process, short(r.Waited), r.Left, note)
	}
	_ = t.Flush() // into memory
}

// short rounds to what a person reads.
func short(d time.Duration) time.Duration {
	if d < time.Millisecond {
		return d.Round(time.Microsecond)
	}
	return d.Round(100 * time.Microsecond)
}
