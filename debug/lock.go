package debug

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/visible"
)

// shownHolders bounds the page, of holders and of places in the queue: each holder has a form with the lock's name.
const shownHolders = 50

// askRedis bounds the question that the page of a lock asks.
const askRedis = 3 * time.Second

// lockPage is the page about one lock, and its JSON.
type lockPage struct {
	At        time.Time `json:"at"`
	App       string    `json:"app"`
	Process   string    `json:"process"`
	Name      string    `json:"name"`
	NameBytes []byte    `json:"nameBytes,omitempty"`
	Here      []row     `json:"here"`
	Redis     []answer  `json:"redis"` // of each manager
	Events    []event   `json:"events"`

	Said    string `json:"-"` // of a lock that was to be freed
	Allowed bool   `json:"-"` // to free it
}

// answer is what Redis knows of the lock.
type answer struct {
	Manager int      `json:"manager"`
	Error   string   `json:"error,omitempty"`
	Kind    string   `json:"kind"`
	Permits *permits `json:"semaphore,omitempty"` // nil: it is another kind
	Held    bool     `json:"held"`
	Holders []holder `json:"holders"`
	More    int      `json:"moreHolders"`
	TTL     millis   `json:"ttl"` // -1: none
	Waiters int      `json:"waiters"`
	Queue   []place  `json:"queue"` // the first places
	Overdue int      `json:"overdue"`
	Token   uint64   `json:"token"`
}

// permits are those of a semaphore.
type permits struct {
	All       int `json:"permits"`
	Available int `json:"available"` // including those whose time is over; below 0 after a cut
}

// What returns the kind, and of a semaphore how many permits there are.
func (a answer) What() string {
	if a.Permits == nil {
		return a.Kind
	}
	return fmt.Sprintf("%s, %d of %d available", a.Kind, a.Permits.Available, a.Permits.All)
}

type holder struct {
	Owner    string `json:"owner"`
	Write    bool   `json:"write"`
	Holdfast bool   `json:"holdfast"`
	TTL      millis `json:"ttl"`
	Value    string `json:"value,omitempty"`    // of WithValue
	Detached bool   `json:"detached,omitempty"` // no process has the lock: its process has left it to a ticket

	Process *process `json:"process,omitempty"` // nil: it does not say what it is
	callers
}

// place is one in the queue.
type place struct {
	Owner    string   `json:"owner"`
	Holdfast bool     `json:"holdfast"`
	Process  *process `json:"process,omitempty"` // nil: it does not say what it is
	callers
}

// callers are those of another process that wait for the lock, by its own account.
type callers struct {
	Callers      int       `json:"callers,omitempty"`
	CallersSince time.Time `json:"callersSince,omitzero"` // when the oldest came
}

// Wait says how many there are, and since when the oldest waits.
func (c callers) Wait(now time.Time) string {
	if c.Callers == 0 {
		return "-"
	}
	return fmt.Sprintf("%d, for up to %s", c.Callers, span(since(c.CallersSince, now)))
}

// process is what a process says of itself.
type process struct {
	App     string    `json:"app"`
	Host    string    `json:"host"`
	PID     int       `json:"pid"`
	Started time.Time `json:"started"`
	Version string    `json:"version"`
	Debug   string    `json:"debug,omitempty"` // the address of its page
}

// Page is the address of the process's own page; empty: it says none, or none that a link may lead to. Any client of
// Redis can have written it.
func (p *process) Page() string {
	if u, err := url.Parse(p.Debug); err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" {
		return ""
	}
	return p.Debug
}

// WaitHere counts the callers of this process that wait.
func (p *lockPage) WaitHere() (n int) {
	for _, r := range p.Here {
		n += r.Waiters
	}
	return n
}

// HeldHere reports whether this process holds it.
func (p *lockPage) HeldHere() bool {
	return slices.ContainsFunc(p.Here, func(r row) bool { return r.State == string(holdfast.LocalHeld) })
}

func (h *handler) lock(w http.ResponseWriter, r *http.Request) {
	name := r.URL.Query().Get("name")
	if name == "" {
		http.Error(w, "no lock is named", http.StatusNotFound)
		return
	}
	now := h.now()
	page := &lockPage{
		At: now, App: h.app(), Process: processName(), Name: name, NameBytes: visible.Bytes(name), Here: []row{}, Events: []event{},
		Said: r.URL.Query().Get("said"), Allowed: h.allowed != nil && h.allowed(r),
	}
	ctx, cancel := context.WithTimeout(r.Context(), askRedis)
	defer cancel()
	l := h.look()
	for _, r := range slices.Concat(l.holding, l.waiting) {
		if r.Name == name {
			page.Here = append(page.Here, r)
		}
	}
	page.Redis = make([]answer, len(h.peers))
	var asking sync.WaitGroup
	for i, p := range h.peers {
		asking.Go(func() {
			info, err := p.Inspect(ctx, name)
			page.Redis[i] = newAnswer(i+1, info, err)
		})
	}
	asking.Wait()
	events := h.events()
	for i := len(events) - 1; i >= 0; i-- {
		if events[i].Lock == name {
			page.Events = append(page.Events, newEvent(events[i], now))
		}
	}
	h.show(w, r, "lock", page)
}

// bound cuts what is too long for JSON.
func (p *lockPage) bound() {
	p.Name, p.NameBytes = bounded(p.Name, p.NameBytes)
	for i := range p.Here {
		p.Here[i].bound()
	}
	for i := range p.Events {
		p.Events[i].Lock, _ = bounded(p.Events[i].Lock, nil)
	}
}

func newAnswer(manager int, info holdfast.Info, err error) answer {
	a := answer{
		Manager: manager, Kind: string(info.Kind), Held: info.Held, Holders: []holder{}, Queue: []place{}, More: info.More, TTL: ttl(info.TTL),
		Waiters: info.Waiters, Overdue: info.Overdue, Token: info.Token,
	}
	if err != nil {
		a.Error = plain(strings.TrimPrefix(err.Error(), "holdfast: "))
	}
	shown := info.Holders[:min(len(info.Holders), shownHolders)]
	a.More += len(info.Holders) - len(shown)
	for _, h := range shown {
		a.Holders = append(a.Holders, *newHolder(h))
	}
	if info.Kind == holdfast.KindSemaphore {
		a.Permits = &permits{info.Permits, info.Available + info.Ended}
		for i, h := range a.Holders { // the permits end one by one
			if i == 0 || h.TTL < a.TTL {
				a.TTL = h.TTL
			}
		}
	}
	for _, w := range info.Queue[:min(len(info.Queue), shownHolders)] {
		a.Queue = append(a.Queue, place{w.Owner, w.Holdfast, (*process)(w.Identity), callers{w.Callers, w.CallersSince}})
	}
	return a
}

func newHolder(h holdfast.Holder) *holder {
	return &holder{h.Owner, h.Write, h.Holdfast, ttl(h.TTL), h.Value, h.Detached, (*process)(h.Identity), callers{h.Callers, h.CallersSince}}
}

// ttl keeps -1, none, as a millisecond is written.
func ttl(d time.Duration) millis {
	if d < 0 {
		return millis(-time.Millisecond)
	}
	return millis(d)
}
