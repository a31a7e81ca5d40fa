package debug

import (
	"cmp"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/journal"
	"github.com/holdfast-go/holdfast/internal/visible"
)

const (
	rowsPerPage  = 100
	contended    = 10
	shownHolds   = 5 // locks that a waiter holds
	latestEvents = 8 // beside the problems; those before are at the end of the page
)

// overview is the page about all locks, and its JSON. Durations are in ms.
type overview struct {
	At       time.Time `json:"at"`
	App      string    `json:"app"`     // of WithIdentity
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

	History []sample `json:"history"` // of ten minutes, as far as clients have looked
	Waits   waits    `json:"waits"`
}

// Latest are the events beside the problems.
func (o *overview) Latest() []event { return o.Events[:min(len(o.Events), latestEvents)] }

// Earlier are the events before them.
func (o *overview) Earlier() []event { return o.Events[len(o.Latest()):] }

// millis is a duration, in JSON a number of ms.
type millis time.Duration

func (m millis) MarshalJSON() ([]byte, error) {
	return strconv.AppendInt(nil, time.Duration(m).Milliseconds(), 10), nil
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
	Name      string   `json:"name"`
	NameBytes []byte   `json:"nameBytes,omitempty"` // if the name is not UTF-8
	Manager   int      `json:"manager"`
	Kind      string   `json:"kind"`
	State     string   `json:"state"`
	For       millis   `json:"for"` // held, waited for, being released
	Label     string   `json:"label"`
	Left      millis   `json:"left"`  // of the lease
	Share     float64  `json:"share"` // what is left, as a part of the lease
	Leases    int      `json:"leases"`
	Permits   int      `json:"permits,omitempty"` // that the process holds, of a semaphore
	WaitMode  string   `json:"waitMode"`
	Token     uint64   `json:"token"`
	Renewed   millis   `json:"renewedAgo"` // -1: it was not renewed
	RoundTrip millis   `json:"roundTrip"`
	Waiters   int      `json:"waiters"`
	WaitFor   millis   `json:"oldestWait"`
	Waiter    string   `json:"waiterLabel"`
	Holds     []string `json:"waiterHolds,omitempty"` // locks that the oldest waiter holds, as far as its context says; not all
	Holder    *holder  `json:"holder,omitempty"`      // another process, if Redis has named one
	Holders   int      `json:"holders,omitempty"`
	asked     bool     // Redis
}

// What returns the kind, and of a semaphore how many permits the process holds.
func (r row) What() string {
	if r.Permits == 0 {
		return r.Kind
	}
	return fmt.Sprintf("%s, %d permits", r.Kind, r.Permits)
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
	now     time.Time
}

// Clock is when it happened, as a person reads it.
func (e event) Clock() string { return clock(e.At, e.now) }

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
	o := overview{At: now, App: h.app(), Process: processName(), Managers: len(h.peers), Problems: []problem{}, Contended: []struggle{}, Events: []event{}}
	var holding, waiting []row
	var all holdfast.Stats
	var ended engine.Waits
	listens := false
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
			o.Contended = append(o.Contended, struggle{c.Name, visible.Bytes(c.Name), c.Waits, c.Excess})
		}
		stats := p.Stats()
		all = sum(all, stats)
		listens = listens || stats.Waiting > 0 || stats.Subscriptions > 0
		ended.Add(p.waits())
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
	o.History, o.Waits = h.history.add(sample{At: now, Held: o.Held, Wait: o.Waiters, ended: ended})
	h.name(waiting, now)
	events := h.events()
	o.find(events, holding, waiting, listens)
	for _, e := range slices.Backward(events) {
		o.Events = append(o.Events, newEvent(e, now))
	}
	return &look{o, holding, waiting}
}

// count adds a lock to the figures.
func (o *overview) count(r row) {
	o.Waiters += r.Waiters
	o.OldestWait = max(o.OldestWait, r.WaitFor)
	switch r.State {
	case string(holdfast.LocalHeld):
		o.Held++
		o.OldestHold = max(o.OldestHold, r.For)
	case string(holdfast.LocalReleasing):
		o.Leaving++
	}
}

func newRow(l holdfast.LocalLock, manager int, now time.Time) row {
	r := row{
		Name: l.Name, NameBytes: visible.Bytes(l.Name), Manager: manager, Kind: string(l.Kind), State: string(l.State), For: since(l.Since, now),
		Label: l.Label, Leases: l.Leases, Permits: l.Permits, WaitMode: l.WaitMode, Token: l.Token, Renewed: -1, RoundTrip: millis(l.RoundTrip),
		Waiters: l.Waiters, WaitFor: since(l.WaitingSince, now), Waiter: l.WaiterLabel,
		Holds: l.WaiterHolds[:min(len(l.WaiterHolds), shownHolds)],
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
	r.Holds = slices.Clone(r.Holds)
	for i := range r.Holds {
		r.Holds[i], _ = bounded(r.Holds[i], nil)
	}
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

func newEvent(e journal.Event, now time.Time) event {
	return event{At: e.At, Level: e.Level.String(), Text: strings.TrimPrefix(e.Text, "holdfast: "), Lock: e.Lock, Details: plain(e.Details()), now: now}
}

// app is what the managers have WithIdentity from.
func (h *handler) app() string {
	var apps []string
	for _, p := range h.peers {
		if p.app != "" && !slices.Contains(apps, p.app) {
			apps = append(apps, p.app)
		}
	}
	return strings.Join(apps, ", ")
}
