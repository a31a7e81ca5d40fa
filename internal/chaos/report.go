package chaos

import (
	"cmp"
	"encoding/gob"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/holdfast-go/holdfast/internal/judge"
)

// Report is what the judge says of a run.
type Report struct {
	History    *History
	Residue    Residue
	Violations []judge.Violation // the first of each rule
	Longest    time.Duration     // longest wait for a lock after healing
	Late       time.Duration     // longest time from a deadline to Done
	TakenUp    int               // grants of locks that their processes had kept
	Judging    time.Duration
}

// count counts the violations of some rules.
func (r *Report) count(rules ...string) (n int) {
	for _, v := range r.Violations {
		if slices.Contains(rules, v.Rule) {
			n++
		}
	}
	return n
}

// String is the page.
func (r *Report) String() string {
	h := r.History
	var b strings.Builder
	fmt.Fprintf(&b, "seed %d, %v, leases of %v and %v, %d client processes\n\n", h.Seed, time.Duration(h.End-h.Start).Round(time.Millisecond), ttl, slowTTL, len(h.Processes))
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	row := func(what string, format string, args ...any) {
		fmt.Fprintf(w, "%s\t%s\n", what, fmt.Sprintf(format, args...))
	}
	row("operations", "%d (%s)", len(h.Ops), tally(h.Ops, func(o *Op) string { return string(o.Do) + " " + string(o.Result) }))
	row("writes in Redis", "%d", len(h.Writes))
	row("faults", "%d (%s)", len(h.Faults), tally(h.Faults, func(f Fault) string { return f.Kind }))
	row("stalls of the machine", "%d", len(h.Stalls))
	row("granted without a command", "%d, of locks that their processes had kept", r.TakenUp)
	row("overlaps", "%d", r.count("overlap", "claim without hold"))
	row("token inversions", "%d", r.count("token"))
	row("grants and places out of order", "%d", r.count("order", "queue"))
	row("lost wake-ups", "%d", r.count("lost wake-up", "unheard", "kept from others"))
	row("permits lost or made", "%d", r.count("permits"))
	row("losses without cause", "%d", r.count("lost without cause", "false loss"))
	row("keys without TTL", "%d", r.count("ttl"))
	row("forsaken holds and places", "%d", r.count("forsaken hold", "forsaken place"))
	row("answers that are not true", "%d", r.count(untrue...))
	row("left behind", "%d holds and places, %d keys, %d subscriptions, %d goroutines, %d locks", len(r.Residue.Belongings), len(r.Residue.Keys), len(r.Residue.Subscriptions), len(r.Residue.Goroutines), r.Residue.Locks)
	row("closed with requests unanswered", "%d managers", r.Residue.Unconfirmed)
	row("after healing", "longest wait of a fresh client %v, of any %v", r.Residue.Probe.Round(time.Millisecond), r.Longest.Round(time.Millisecond))
	row("told of a lease's end", "%v after its deadline at the latest, by processes that ran", r.Late.Round(time.Microsecond))
	row("judged in", "%v", r.Judging.Round(time.Millisecond))
	_ = w.Flush()
	for _, v := range r.Violations {
		fmt.Fprintf(&b, "\n%8.3f s  %s: %s", v.At.Seconds(), v.Rule, v.Text)
	}
	return b.String()
}

// untrue are the rules about answers.
var untrue = []string{"false refusal", "refused for an idle lock", "hidden loss", "odd error"}

// tally counts by name, the most frequent first.
func tally[T any](all []T, name func(T) string) string {
	counts := make(map[string]int)
	for _, x := range all {
		counts[name(x)]++
	}
	names := slices.SortedFunc(maps.Keys(counts), func(a, b string) int {
		return cmp.Or(counts[b]-counts[a], cmp.Compare(a, b))
	})
	for i, n := range names {
		names[i] = fmt.Sprintf("%s %d", strings.TrimSpace(n), counts[n])
	}
	return strings.Join(names, ", ")
}

// around is how much is shown before and after a violation.
const around = 2 * time.Second

// Save keeps what is needed to understand a red run: the page, the history, and what happened to the lock of each violation around it. It returns the
// directory.
func (r *Report) Save() (dir string, err error) {
	dir, err = os.MkdirTemp("", fmt.Sprintf("holdfast-chaos-%d-", r.History.Seed))
	if err != nil {
		return "", err
	}
	var history strings.Builder
	if err := gob.NewEncoder(&history).Encode(r.History); err != nil {
		return dir, err
	}
	files := map[string]string{"page.txt": r.String(), "history.gob": history.String()} // what the server's file has is bytes, not text
	for _, v := range r.Violations {
		files[strings.ReplaceAll(v.Rule, " ", "-")+".txt"] = r.Around(v)
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			return dir, err
		}
	}
	return dir, nil
}

// Around lists the operations on a violation's lock, what the server wrote there, and the faults, in the seconds around it.
func (r *Report) Around(v judge.Violation) string {
	h := r.History
	type line struct {
		at   int64
		text string
	}
	var lines []line
	add := func(at int64, format string, args ...any) {
		if off := time.Duration(at-h.Start) - v.At; off >= -around && off <= around {
			lines = append(lines, line{at, fmt.Sprintf(format, args...)})
		}
	}
	add(h.Start+int64(v.At), "VIOLATION %v", v)
	for _, o := range h.Ops {
		if o.Name == v.Lock {
			add(o.Call, "call    %v", o)
			add(o.Return, "return  %v", o)
		}
	}
	for _, w := range transactions(h.Writes, h.Ticks) {
		for _, cmd := range w.commands {
			if v.Lock != "" && strings.Contains(strings.Join(cmd[1:], " "), v.Lock) {
				add(w.lo, "server  %v later at most: %q", time.Duration(w.hi-w.lo), cmd)
			}
		}
	}
	for _, f := range slices.Concat(h.Faults, h.Stalls) {
		add(f.Start, "FAULT   %s for %v, client %d %s", f.Kind, time.Duration(f.End-f.Start), f.Proc, f.Name)
	}
	slices.SortStableFunc(lines, func(a, b line) int { return cmp.Compare(a.at, b.at) })
	var b strings.Builder
	for _, l := range lines {
		fmt.Fprintf(&b, "%12.6f  %s\n", time.Duration(l.at-h.Start).Seconds(), l.text)
	}
	return b.String()
}
