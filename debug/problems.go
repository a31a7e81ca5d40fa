package debug

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/journal"
)

const (
	longWait      = 30 * time.Second // after it the wait of a caller is a problem
	lateRenewal   = 0.5              // of a lease: it is renewed when two thirds are left
	lately        = 5 * time.Minute  // for so long a lease that was lost is a problem
	namedProblems = 3                // locks with the same problem that are named
)

// problem is a thing that goes wrong now, or has lately.
type problem struct {
	Severe bool      `json:"severe"`
	Text   string    `json:"text"`
	Reason string    `json:"reason,omitempty"`
	At     time.Time `json:"at,omitzero"` // it happened, or began
	Lock   string    `json:"lock,omitempty"`
	more   int       // locks with the same problem that are not named
	now    time.Time
}

// Clock is when it happened, as a person reads it.
func (p problem) Clock() string { return clock(p.At, p.now) }

// Wrong counts the problems.
func (o *overview) Wrong() (n int) {
	for _, p := range o.Problems {
		n += max(p.more, 1)
	}
	return n
}

// find looks for problems, the severe ones first. listens says whether messages are wanted.
func (o *overview) find(events []journal.Event, holding, waiting []row, listens bool) {
	now := o.At
	standing := standing(events, now, listens)
	o.Problems = append(o.Problems, standing...)
	o.ended(events)
	for _, c := range o.Counters {
		if !c.Alarm() || slices.ContainsFunc(standing, func(p problem) bool { return p.Text == c.line }) {
			continue
		}
		p := problem{Severe: true, Text: fmt.Sprintf("%s: %d in the last minute", c.Name, c.LastMinute)}
		for _, e := range events { // the last one
			if strings.TrimPrefix(e.Text, "holdfast: ") == c.line {
				p.At, p.Reason = e.At, reason(e)
			}
		}
		o.Problems = append(o.Problems, p)
	}
	late := slices.DeleteFunc(slices.Clone(holding), func(r row) bool {
		return r.State != string(holdfast.LocalHeld) || r.Renewed < 0 || r.Share >= lateRenewal
	})
	slices.SortFunc(late, func(a, b row) int { return cmp.Or(cmp.Compare(a.Left, b.Left), strings.Compare(a.Name, b.Name)) })
	report(o, late, func(r row) problem {
		return problem{
			Severe: true, Lock: r.Name, At: now.Add(-time.Duration(r.Renewed)), Text: "not renewed for " + span(r.Renewed),
			Reason: "its lease ends in " + span(r.Left),
		}
	}, "locks are not renewed in time")
	long := slices.DeleteFunc(slices.Concat(holding, waiting), func(r row) bool { return time.Duration(r.WaitFor) < longWait })
	slices.SortFunc(long, func(a, b row) int {
		return cmp.Or(cmp.Compare(b.WaitFor, a.WaitFor), strings.Compare(a.Name, b.Name))
	})
	report(o, long, func(r row) problem {
		return problem{Lock: r.Name, At: now.Add(-time.Duration(r.WaitFor)), Text: "a caller has waited for " + span(r.WaitFor), Reason: r.whom()}
	}, "locks have such callers")
	slices.SortStableFunc(o.Problems, func(a, b problem) int {
		if a.Severe == b.Severe {
			return 0
		}
		if a.Severe {
			return -1
		}
		return 1
	})
	for i := range o.Problems {
		o.Problems[i].now = now
	}
}

// report names the worst of what has a problem, which come first, and counts the others.
func report[T any](o *overview, all []T, problemOf func(T) problem, others string) {
	for _, x := range all[:min(len(all), namedProblems)] {
		o.Problems = append(o.Problems, problemOf(x))
	}
	if more := len(all) - namedProblems; more > 0 {
		o.Problems = append(o.Problems, problem{Severe: problemOf(all[0]).Severe, Text: fmt.Sprintf("%d more %s", more, others), more: more})
	}
}

// spells are what begins with one line of the log and ends with another. A lost connection for messages is made anew, and so
// restored, only if messages are wanted.
var spells = []struct {
	begins, ends string
	severe       bool
	wanted       bool // it counts only while messages are wanted
}{
	{"redis does not answer", "redis answers again", true, false},
	{"renewal failed, trying again", "no renewal fails any more", true, false},
	{"a waiting caller is refused, trying again", "no waiting caller is refused any more", true, false},
	{"pub/sub connection lost; polling until it is restored", "pub/sub connection restored", false, true},
	{"messages do not arrive; polling until they do", "pub/sub connection restored", false, false},
	{"not permitted to subscribe; polling instead", "permitted to subscribe now", false, false},
}

// standing returns what has begun and not ended.
func standing(events []journal.Event, now time.Time, listens bool) (problems []problem) {
	for _, s := range spells {
		if s.wanted && !listens {
			continue
		}
		for _, e := range slices.Backward(events) {
			text := strings.TrimPrefix(e.Text, "holdfast: ")
			if text == s.ends {
				break
			}
			if text == s.begins {
				problems = append(problems, problem{Severe: s.severe, Text: text, At: e.At, Reason: cmp.Or(reason(e), "for "+span(since(e.At, now)))})
				break
			}
		}
	}
	return problems
}

// ended adds what has happened to locks lately, the last first.
func (o *overview) ended(events []journal.Event) {
	byText := make(map[string][]journal.Event)
	var texts []string
	for _, e := range slices.Backward(events) {
		if e.Lock == "" || o.At.Sub(e.At) >= lately {
			continue
		}
		if byText[e.Text] == nil {
			texts = append(texts, e.Text)
		}
		byText[e.Text] = append(byText[e.Text], e)
	}
	for _, text := range texts {
		said := strings.TrimPrefix(text, "holdfast: ")
		report(o, byText[text], func(e journal.Event) problem {
			return problem{Severe: true, Lock: e.Lock, At: e.At, Text: said + " " + span(since(e.At, o.At)) + " ago", Reason: reason(e)}
		}, fmt.Sprintf("in %d minutes: %s", int(lately.Minutes()), said))
	}
}

// reasons are those of a lost lease, in words.
var reasons = map[string]string{
	string(holdfast.LostDeleted):  "key deleted",
	string(holdfast.LostStolen):   "another owner holds the lock in Redis",
	string(holdfast.LostDeadline): "no renewal was confirmed in time",
}

// reason is what a line of the log says beside its text, in words.
func reason(e journal.Event) string { return inWords(plain(e.Details())) }

func inWords(details string) string {
	for _, key := range []string{"reason: ", "error: "} {
		if said, found := strings.CutPrefix(details, key); found {
			return cmp.Or(reasons[said], said)
		}
	}
	return details
}
