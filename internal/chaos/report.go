package chaos

import (
	"cmp"
	"fmt"
	"maps"
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
	fmt.Fprintf(&b, "seed %d, %v, leases of %v and %v, %d client processes\n\n", h.Seed, time.Duration(h.End-h.Start).Round(time.Millisecond), h.TTL, slowTTL, len(h.Processes))
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
var untrue = []string{"false refusal", "refused for an idle lock", "false picture", "hidden loss", "odd error"}

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
