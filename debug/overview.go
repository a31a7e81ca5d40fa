package debug

import (
	"cmp"
	"fmt"
	"maps"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/journal"
)

const (
	rowsPerPage = 100
	contended   = 10
	longWait    = 30 * time.Second // after it a page names the wait among what goes wrong
	lateRenewal = 0.5              // of a lease: it is renewed when two thirds are left
)

// overview is the page about all locks, and its JSON. Durations are in ms.
type overview struct {
	At       time.Time `json:"at"`
	Process  string    `json:"process"` // host and number
	Managers int       `json:"managers"`
	Held     int       `json:"held"`
	Waiters  int       `json:"waiters"`
	Leaving  int       `json:"releasing"`
	Problems []problem `json:"problems"`

	Holding   list       `json:"holding"`
	Waiting   list       `json:"waiting"`
	Contended []struggle `json:"contended"`
	Counters  []counter  `json:"counters"`
	Events    []event    `json:"events"` // the latest first

	OldestWait millis `json:"oldestWait"`
	OldestHold millis `json:"oldestHold"`
	Search     string `json:"search"` // only locks whose names have it
	query      url.Values

	late  []row // held, and not renewed in time
	waits []row // waited for for long
}

// millis is a duration, in JSON a number of ms.
type millis time.Duration

func (m millis) MarshalJSON() ([]byte, error) {
	return strconv.AppendInt(nil, time.Duration(m).Milliseconds(), 10), nil
}

// problem is a thing that goes wrong now.
type problem struct {
	Severe bool   `json:"severe"`
	Text   string `json:"text"`
	Lock   string `json:"lock,omitempty"`
}

// list is one page of the locks that are held, or waited for.
type list struct {
	All   int   `json:"all"`
	Page  int   `json:"page"`
	Pages int   `json:"pages"`
	Locks []row `json:"locks"`
	param string
	query url.Values
}

// row is a lock of this process.
type row struct {
	Name      string  `json:"name"`
	NameBytes []byte  `json:"nameBytes,omitempty"` // if the name is not UTF-8
	Manager   int     `json:"manager"`
	Kind      string  `json:"kind"`
	State     string  `json:"state"`
	For       millis  `json:"for"` // held, waited for, being released
	Label     string  `json:"label"`
	Left      millis  `json:"left"`  // of the lease
	Share     float64 `json:"share"` // what is left, as a part of the lease
	Leases    int     `json:"leases"`
	WaitMode  string  `json:"waitMode"`
	Token     uint64  `json:"token"`
	Renewed   millis  `json:"renewedAgo"` // -1: it was not renewed
	RoundTrip millis  `json:"roundTrip"`
	Waiters   int     `json:"waiters"`
	WaitFor   millis  `json:"oldestWait"`
	Waiter    string  `json:"waiterLabel"`
}

type struggle struct {
	Name      string  `json:"name"`
	NameBytes []byte  `json:"nameBytes,omitempty"`
	Waits     float64 `json:"waits"`
	Excess    float64 `json:"excess"`
}

type event struct {
	At      time.Time `json:"at"`
	Level   string    `json:"level"`
	Text    string    `json:"text"`
	Lock    string    `json:"lock,omitempty"`
	Details string    `json:"details,omitempty"`
}

// overview is what a request asks for of the look.
func (h *handler) overview(query url.Values) *overview {
	l := h.look()
	o := l.overview // what its slices have is only read
	o.Search, o.query = plain(query.Get("q")), query
	holding, waiting := l.holding, l.waiting
	if q := query.Get("q"); q != "" {
		other := func(r row) bool { return !strings.Contains(r.Name, q) }
		holding, waiting = slices.DeleteFunc(slices.Clone(holding), other), slices.DeleteFunc(slices.Clone(waiting), other)
	}
	o.Holding, o.Waiting = newList(holding, "held", query), newList(waiting, "waiting", query)
	return &o
}

// look is what the managers know at a moment. It does not change.
type look struct {
	overview
	holding, waiting []row // in the order of the page
}

// look returns the last look if it is fresh: requests at the same time, and shortly after, share one.
func (h *handler) look() *look {
	h.mu.Lock()
	defer h.mu.Unlock()
	now := h.now()
	if h.last == nil || now.Before(h.last.At) || now.Sub(h.last.At) >= h.fresh {
		h.last = h.newLook(now)
		time.AfterFunc(h.fresh, h.forget) // it can be large
	}
	return h.last
}

// forget lets the next request look anew.
func (h *handler) forget() {
	h.mu.Lock()
	h.last = nil
	h.mu.Unlock()
}

// newLook takes the data of now.
func (h *handler) newLook(now time.Time) *look {
	o := overview{At: now, Process: processName(), Managers: len(h.peers), Problems: []problem{}, Contended: []struggle{}, Events: []event{}}
	var holding, waiting []row
	var all holdfast.Stats
	for i, p := range h.peers {
		for l := range p.Locks() {
			r := newRow(l, i+1, now)
			o.count(r)
			if l.State == holdfast.LocalHeld || l.State == holdfast.LocalIdle {
				holding = append(holding, r)
			} else {
				waiting = append(waiting, r)
			}
		}
		for _, c := range p.Contended(contended) {
			o.Contended = append(o.Contended, struggle{c.Name, notUTF8(c.Name), c.Waits, c.Excess})
		}
		all = sum(all, p.Stats())
	}
	slices.SortFunc(holding, func(a, b row) int {
		return cmp.Or(cmp.Compare(b.Waiters, a.Waiters), cmp.Compare(b.For, a.For), strings.Compare(a.Name, b.Name))
	})
	slices.SortFunc(waiting, func(a, b row) int {
		return cmp.Or(cmp.Compare(b.WaitFor, a.WaitFor), cmp.Compare(b.For, a.For), strings.Compare(a.Name, b.Name))
	})
	slices.SortStableFunc(o.Contended, func(a, b struggle) int { return cmp.Compare(b.Waits, a.Waits) })
	o.Contended = o.Contended[:min(len(o.Contended), contended)]
	o.Counters = h.rates.add(all, now)
	events := h.events()
	o.Problems = slices.Concat(o.Problems, standing(events), ended(events, now))
	for _, c := range o.Counters {
		if c.alarm && c.LastMinute > 0 {
			o.Problems = append(o.Problems, problem{Severe: true, Text: fmt.Sprintf("%s: %d in the last minute", c.Name, c.LastMinute)})
		}
	}
	slices.SortFunc(o.late, func(a, b row) int { return cmp.Or(cmp.Compare(a.Left, b.Left), strings.Compare(a.Name, b.Name)) })
	slices.SortFunc(o.waits, func(a, b row) int {
		return cmp.Or(cmp.Compare(b.WaitFor, a.WaitFor), strings.Compare(a.Name, b.Name))
	})
	o.report(true, o.late, "locks are in the same state", func(r row) string {
		return "not renewed for " + span(r.Renewed) + ", its lease ends in " + span(r.Left)
	})
	o.report(false, o.waits, "locks have such callers", func(r row) string { return "a caller has waited for " + span(r.WaitFor) })
	slices.SortStableFunc(o.Problems, func(a, b problem) int { return cmp.Compare(severity(b), severity(a)) })
	for _, e := range slices.Backward(events) {
		o.Events = append(o.Events, newEvent(e))
	}
	return &look{o, holding, waiting}
}

// namedProblems is how many locks with the same problem are named.
const namedProblems = 3

// report names the worst locks with a problem, which come first, and counts the others.
func (o *overview) report(severe bool, locks []row, others string, text func(row) string) {
	for _, r := range locks[:min(len(locks), namedProblems)] {
		o.Problems = append(o.Problems, problem{Severe: severe, Text: text(r), Lock: r.Name})
	}
	if more := len(locks) - namedProblems; more > 0 {
		o.Problems = append(o.Problems, problem{Severe: severe, Text: fmt.Sprintf("%d more %s", more, others)})
	}
}

func severity(p problem) int {
	if p.Severe {
		return 1
	}
	return 0
}

// count adds a lock to the figures, and to what goes wrong.
func (o *overview) count(r row) {
	o.Waiters += r.Waiters
	o.OldestWait = max(o.OldestWait, r.WaitFor)
	switch r.State {
	case string(holdfast.LocalHeld):
		o.Held++
		o.OldestHold = max(o.OldestHold, r.For)
		if r.Renewed >= 0 && r.Share < lateRenewal {
			o.late = append(o.late, r)
		}
	case string(holdfast.LocalReleasing):
		o.Leaving++
	}
	if time.Duration(r.WaitFor) >= longWait {
		o.waits = append(o.waits, r)
	}
}

func newRow(l holdfast.LocalLock, manager int, now time.Time) row {
	r := row{
		Name: l.Name, NameBytes: notUTF8(l.Name), Manager: manager, Kind: string(l.Kind), State: string(l.State), For: since(l.Since, now),
		Label: l.Label, Leases: l.Leases, WaitMode: l.WaitMode, Token: l.Token, Renewed: -1, RoundTrip: millis(l.RoundTrip),
		Waiters: l.Waiters, WaitFor: since(l.WaitingSince, now), Waiter: l.WaiterLabel,
	}
	if !l.Deadline.IsZero() {
		begun := l.Since
		if !l.Renewed.IsZero() {
			begun, r.Renewed = l.Renewed, since(l.Renewed, now)
		}
		r.Left = millis(max(l.Deadline.Sub(now), 0))
		if whole := l.Deadline.Sub(begun); whole > 0 {
			r.Share = min(float64(r.Left)/float64(whole), 1)
		}
	}
	return r
}

func since(begun, now time.Time) millis {
	if begun.IsZero() {
		return 0
	}
	return millis(max(now.Sub(begun), 0))
}

// bound cuts what is too long for JSON: programs choose names and labels.
func (o *overview) bound() {
	for _, rows := range [][]row{o.Holding.Locks, o.Waiting.Locks} {
		for i := range rows {
			rows[i].bound()
		}
	}
	o.Contended, o.Events, o.Problems = slices.Clone(o.Contended), slices.Clone(o.Events), slices.Clone(o.Problems)
	for i := range o.Contended {
		o.Contended[i].Name, o.Contended[i].NameBytes = bounded(o.Contended[i].Name, o.Contended[i].NameBytes)
	}
	for i := range o.Events {
		o.Events[i].Lock, _ = bounded(o.Events[i].Lock, nil)
	}
	for i := range o.Problems {
		o.Problems[i].Lock, _ = bounded(o.Problems[i].Lock, nil)
	}
}

func (r *row) bound() {
	r.Name, r.NameBytes = bounded(r.Name, r.NameBytes)
	r.Label, _ = bounded(r.Label, nil)
	r.Waiter, _ = bounded(r.Waiter, nil)
}

// newList takes one page of the rows.
func newList(rows []row, param string, query url.Values) list {
	l := list{All: len(rows), Pages: max((len(rows)+rowsPerPage-1)/rowsPerPage, 1), param: param, query: query}
	page, _ := strconv.Atoi(query.Get(param)) // 0 if there is none
	l.Page = min(max(page, 1), l.Pages)
	from := (l.Page - 1) * rowsPerPage
	l.Locks = slices.Clone(rows[from:min(from+rowsPerPage, len(rows))])
	if l.Locks == nil {
		l.Locks = []row{}
	}
	return l
}

// Previous and Next are the links to the pages around this one; empty: there is none.
func (l list) Previous() string { return l.to(l.Page - 1) }

// Next is the link to the page behind this one.
func (l list) Next() string { return l.to(l.Page + 1) }

func (l list) to(page int) string {
	if page < 1 || page > l.Pages {
		return ""
	}
	query := url.Values{l.param: {strconv.Itoa(page)}}
	for _, keep := range []string{"q", "held", "waiting"} {
		if v := l.query.Get(keep); v != "" && keep != l.param {
			query.Set(keep, v)
		}
	}
	return "?" + query.Encode()
}

// events returns those of all managers in the order of their times.
func (h *handler) events() (all []journal.Event) {
	for _, p := range h.peers {
		all = append(all, p.events()...)
	}
	slices.SortStableFunc(all, func(a, b journal.Event) int { return a.At.Compare(b.At) })
	return all
}

func newEvent(e journal.Event) event {
	return event{At: e.At, Level: e.Level.String(), Text: strings.TrimPrefix(e.Text, "holdfast: "), Lock: e.Lock, Details: plain(e.Details())}
}

// spells are what begins with one line of the log and ends with another.
var spells = []struct {
	begins, ends string
	severe       bool
}{
	{"holdfast: redis does not answer", "holdfast: redis answers again", true},
	{"holdfast: renewal failed, trying again", "holdfast: no renewal fails any more", true},
	{"holdfast: pub/sub connection lost; polling until it is restored", "holdfast: pub/sub connection restored", false},
	{"holdfast: not permitted to subscribe; polling instead", "holdfast: permitted to subscribe now", false},
}

// standing returns what has begun and not ended.
func standing(events []journal.Event) (problems []problem) {
	for _, s := range spells {
		for _, e := range slices.Backward(events) {
			if e.Text == s.ends {
				break
			}
			if e.Text == s.begins {
				problems = append(problems, problem{Severe: s.severe, Text: strings.TrimPrefix(s.begins, "holdfast: ") + " (since " + clock(e.At) + "): " + plain(e.Details())})
				break
			}
		}
	}
	return problems
}

// lately is for how long a lease that ended is something that goes wrong.
const lately = 5 * time.Minute

// ended returns what has happened to locks lately, with the name of the last one.
func ended(events []journal.Event, now time.Time) (problems []problem) {
	counts, last := make(map[string]int), make(map[string]string)
	for _, e := range events {
		if e.Lock != "" && now.Sub(e.At) < lately {
			counts[e.Text]++
			last[e.Text] = e.Lock
		}
	}
	for _, text := range slices.Sorted(maps.Keys(counts)) {
		problems = append(problems, problem{
			Severe: true, Lock: last[text],
			Text: fmt.Sprintf("%s, the last of %d in %d minutes", strings.TrimPrefix(text, "holdfast: "), counts[text], int(lately.Minutes())),
		})
	}
	return problems
}

func processName() string {
	host, err := os.Hostname()
	if err != nil {
		host = "this host"
	}
	return fmt.Sprintf("%s, process %d", host, os.Getpid())
}
