package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"
)

func (m measured) print(w io.Writer, format string) error {
	if format != formatTable {
		encoder := json.NewEncoder(w)
		if format == formatJSON {
			encoder.SetIndent("", "  ")
		}
		return encoder.Encode(m)
	}
	var text bytes.Buffer
	fmt.Fprintf(&text, "%s, round trip %.0f µs\n\n", m.Server, m.RoundTrip)
	fmt.Fprintf(&text, "%-18s %10.0f pairs/s   %d processes with a lock each, %d pairs in %v\n", "uncontended", m.PairsPerSecond, m.Processes, m.Pairs, time.Duration(m.Millis)*time.Millisecond)
	fmt.Fprintf(&text, "%-18s %10.0f µs        p50 of %d between two processes; p99 %.0f µs\n", "remote hand-off", m.HandoffP50, m.Handoffs, m.HandoffP99)
	fmt.Fprintf(&text, "%-18s %10.2f           per uncontended pair; %.2f per pair with a remote hand-off\n", "commands", m.CommandsPerPair, m.CommandsPerGrant)
	if m.Handoffs > 0 {
		fmt.Fprintf(&text, "\n%-18s\n", "remote hand-offs")
		drawTimes(&text, m.handoffs)
	}
	_, err := text.WriteTo(w)
	return err
}

// drawTimes draws a bar for each doubling of the time. The times are sorted.
func drawTimes(w io.Writer, times []time.Duration) {
	const width = 40
	limit := 50 * time.Microsecond
	type bucket struct {
		from, to time.Duration
		n        int
	}
	var buckets []bucket
	most := 0
	for from := time.Duration(0); len(times) > 0; from, limit = limit, limit*2 {
		b := bucket{from: from, to: limit}
		for len(times) > 0 && times[0] < limit {
			b.n++
			times = times[1:]
		}
		if b.n > 0 || len(buckets) > 0 {
			buckets = append(buckets, b)
		}
		most = max(most, b.n)
	}
	for _, b := range buckets {
		bar := strings.Repeat("█", (b.n*width+most-1)/most)
		fmt.Fprintf(w, "%9s - %-9s  %-*s %d\n", b.from, b.to, width, bar, b.n)
	}
}
