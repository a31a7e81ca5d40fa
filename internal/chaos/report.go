package chaos

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// Report is what the judges say of a run.
type Report struct {
	History    *History
	Residue    Residue
	Violations []Violation // the earliest first
	Ambiguity  Ambiguity
	Longest    time.Duration // longest wait for a lock after healing
	Late       time.Duration // longest time from a deadline to Done
	Judging    time.Duration
}

// Judge lets all judges look at a run. Porcupine gets so much time for each stretch.
func Judge(h *History, residue Residue, patience time.Duration) *Report {
	begin := time.Now()
	r := &Report{History: h, Residue: residue}
	r.Violations = append(r.Violations, Claims(h)...)
	r.Violations = append(r.Violations, Truths(h)...)
	wakes, longest := Wakes(h)
	r.Violations = append(r.Violations, wakes...)
	r.Violations = append(r.Violations, Order(h)...)
	late, latest := Told(h)
	r.Violations = append(r.Violations, late...)
	r.Late = latest
	r.Longest = longest
	linear, ambiguity := Linear(h, patience)
	r.Violations = append(r.Violations, linear...)
	r.Ambiguity = ambiguity
	r.Violations = append(r.Violations, leftovers(h, residue)...)
	for _, o := range h.Ops {
		if o.Result == Failed && !h.excused(o.Name, o.Call) && !h.excused(o.Name, o.Return) {
			r.Violations = append(r.Violations, Violation{"answers", "unexpected error", o.Name, o.Return, o.String()})
		}
	}
	slices.SortStableFunc(r.Violations, func(a, b Violation) int { return cmp.Compare(a.At, b.At) })
	r.Judging = time.Since(begin)
	return r
}

// leftovers judges what was found after all callers had stopped, and after all processes had gone.
func leftovers(h *History, res Residue) (violations []Violation) {
	add := func(rule, text string) {
		violations = append(violations, Violation{"residue", rule, "-", h.End, text})
	}
	if all := slices.Concat(res.Belongings, res.Keys); len(all) > 0 {
		add("keys", fmt.Sprintf("%q", all))
	}
	if len(res.Subscriptions)+res.Connections > 0 {
		add("subscriptions", fmt.Sprintf("%q, %d connections", res.Subscriptions, res.Connections))
	}
	for _, g := range res.Goroutines {
		add("goroutines", g)
	}
	if res.Locks > 0 {
		add("locks", fmt.Sprintf("%d locks, holds or waiters are still known", res.Locks))
	}
	if res.Probe > h.recovery("") {
		violations = append(violations, Violation{"residue", "recovery", "-", h.Healed, fmt.Sprintf("a fresh client waited %v for a lock", res.Probe)})
	}
	for _, name := range res.ProbeFailed {
		violations = append(violations, Violation{"residue", "recovery", name, h.Healed, "a fresh client did not get the lock"})
	}
	return violations
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
	row("writes in Redis", "%d", h.Truth.Writes)
	row("faults", "%d (%s)", len(h.Faults), tally(h.Faults, func(f Fault) string { return f.Kind }))
	row("stalls of the machine", "%d", len(h.Stalls))
	a := r.Ambiguity
	row("without verdict", "%d acquires: %d gave up, %d had no answer, %d were cut off by a kill", a.Ended+a.Unavailable+a.Cut, a.Ended, a.Unavailable, a.Cut)
	row("granted unheard", "%d, in Redis for %v at the most; none renewed or kept unless it says so below", a.Ghosts, a.Longest.Round(time.Millisecond))
	row("granted without a command", "%d, of locks that their processes had kept", h.takenUp())
	row("overlaps", "%d", r.count("overlap", "exclusion", "claim without hold"))
	row("token inversions", "%d", r.count("token"))
	row("lost wake-ups", "%d", r.count("lost wake-up", "stuck waiter"))
	row("losses without cause", "%d", r.count("lost without cause", "false loss"))
	row("keys without TTL", "%d", r.count("ttl"))
	row("forsaken holds", "%d", r.count("forsaken hold"))
	row("answers that cannot be true", "%d", r.count("impossible answers"))
	row("left behind", "%d holds and places, %d keys, %d subscriptions, %d goroutines, %d locks", len(r.Residue.Belongings), len(r.Residue.Keys), len(r.Residue.Subscriptions), len(r.Residue.Goroutines), r.Residue.Locks)
	row("closed with requests unanswered", "%d managers", r.Residue.Unconfirmed)
	row("after healing", "longest wait of a fresh client %v, of any %v", r.Residue.Probe.Round(time.Millisecond), r.Longest.Round(time.Millisecond))
	row("told of a lease's end", "%v after its deadline at the latest, by processes that ran", r.Late.Round(time.Microsecond))
	for i := range Kinds {
		k := &Kinds[i]
		turns := h.turns(k)
		row("overtaken, "+k.Name, "in Redis's queue %d of %d, one by %d at the most; as callers see it %d of the quiet lock's waiters",
			turns.Overtaken, turns.Waited, turns.Most, len(Bypasses(h, k.quiet())))
	}
	row("judged in", "%v", r.Judging.Round(time.Millisecond))
	_ = w.Flush()
	const most = 20
	for i, v := range r.Violations {
		if i == most {
			fmt.Fprintf(&b, "... and %d more\n", len(r.Violations)-most)
			break
		}
		fmt.Fprintf(&b, "\n%8.3f s  %v", time.Duration(v.At-h.Start).Seconds(), v)
	}
	return b.String()
}

// turns are those of both locks of a kind.
func (h *History) turns(k *Kind) (sum Turns) {
	for _, name := range k.names() {
		if t := h.Truth.Turns[name]; t != nil {
			sum.Waited += t.Waited
			sum.Overtaken += t.Overtaken
			sum.Most = max(sum.Most, t.Most)
		}
	}
	return sum
}

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
