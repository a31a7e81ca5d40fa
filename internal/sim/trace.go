package sim

import (
	"fmt"
	"strings"
	"time"
)

// traceRoom is how many lines are remembered.
const traceRoom = 20000

// trace is what has happened, the latest lines of it. They are put into words only when they are read.
type trace struct {
	lines []note
	next  int // where the next one goes, once there are traceRoom
}

type note struct {
	at     time.Duration
	format string
	args   []any
}

func (t *trace) add(at time.Duration, format string, args []any) {
	l := note{at, format, args}
	if len(t.lines) < traceRoom {
		t.lines = append(t.lines, l)
		return
	}
	t.lines[t.next] = l
	t.next = (t.next + 1) % traceRoom
}

// last returns the lines since a time. Owner ids begin with the names of processes, not with what is random in them,
// and tickets are numbered.
func (t *trace) last(since time.Duration, names *strings.Replacer) string {
	var b strings.Builder
	for i := range t.lines {
		l := t.lines[(t.next+i)%len(t.lines)]
		if l.at >= since {
			fmt.Fprintf(&b, "%12.6fs  ", l.at.Seconds())
			fmt.Fprintf(&b, l.format, l.args...)
			b.WriteByte('\n')
		}
	}
	tickets := map[string]string{}
	return ticketNumber.ReplaceAllStringFunc(names.Replace(b.String()), func(n string) string {
		if tickets[n] == "" {
			tickets[n] = fmt.Sprint(":ticket", len(tickets)+1)
		}
		return tickets[n]
	})
}

// names has the beginning of owner ids replaced by the names of their processes, and of the servers if there are several.
func (w *World) names() *strings.Replacer {
	var pairs []string
	for _, p := range w.all {
		for n, prefix := range p.prefix {
			id, name := strings.TrimPrefix(strings.TrimSuffix(prefix, ":"), "hf-"), p.String()
			if id == "" {
				continue
			}
			if len(w.servers) > 1 {
				name += "@" + w.servers[n].addr
			}
			pairs = append(pairs, "hf-"+id, name, id, name)
		}
	}
	return strings.NewReplacer(pairs...)
}

// noteLocked writes a line of the trace. What args have must not change.
func (w *World) noteLocked(format string, args ...any) { w.trace.add(w.now(), format, args) }
