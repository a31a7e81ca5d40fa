package debug

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/engine"
)

const (
	shownHistory = 10 * time.Minute
	sampleEvery  = 5 * time.Second
	sampleLasts  = 3 * sampleEvery // between two looks that are further apart nothing is known
)

// sample is what was held and waited for within a few seconds.
type sample struct {
	At    time.Time `json:"at"`
	Held  int       `json:"held"`    // at most
	Wait  int       `json:"waiting"` // callers, at most
	until time.Time // the last look
	ended engine.Waits
}

// history remembers the looks of ten minutes: nothing runs while no client looks. The zero value is ready.
type history struct {
	samples []sample // guarded by handler.mu; the oldest first, and one of ten minutes ago if there is one
}

// add takes a look. What it returns does not change.
func (h *history) add(s sample) ([]sample, waits) {
	s.until = s.At
	if n := len(h.samples); n > 0 && s.At.Sub(h.samples[n-1].At) < sampleEvery {
		last := h.samples[n-1]
		s.At, s.Held, s.Wait = last.At, max(last.Held, s.Held), max(last.Wait, s.Wait)
		h.samples = h.samples[:n-1]
	}
	begins := s.until.Add(-shownHistory)
	for len(h.samples) > 1 && h.samples[1].At.Before(begins) {
		h.samples = h.samples[1:]
	}
	h.samples = append(h.samples, s)
	shown := slices.Clone(h.samples)
	w := waits{Ended: s.ended}
	if before := shown[0]; before.At.Before(begins) { // else the looks do not reach back so far
		w.Since = before.At
		for i := range w.Ended {
			w.Ended[i] -= min(before.ended[i], w.Ended[i])
		}
		shown = shown[1:]
	}
	return shown, w
}

// waits counts the waits of callers for another owner that have ended.
type waits struct {
	Since time.Time    `json:"since,omitzero"` // zero: all since the managers were made
	Ended engine.Waits `json:"ended"`          // that took less than 1, 10, 100 ms, 1, 10 s, 1 m, and longer
}

// All counts them.
func (w waits) All() (n uint64) {
	for _, ended := range w.Ended {
		n += ended
	}
	return n
}

// Within says how long the quickest of them took, as a share of all.
func (w waits) Within(share float64) string {
	n := uint64(0)
	for i, ended := range w.Ended {
		if n += ended; float64(n) >= share*float64(w.All()) {
			return waitText(i)
		}
	}
	return ""
}

// Bars are the durations with the lengths of their bars, of 100 at most.
func (w waits) Bars() (bars []bar) {
	most := max(slices.Max(w.Ended[:]), 1)
	for i, n := range w.Ended {
		b := bar{Text: waitText(i), Count: n, Length: int(100 * n / most)}
		if n > 0 {
			b.Length = max(b.Length, 1)
		}
		bars = append(bars, b)
	}
	return bars
}

type bar struct {
	Text   string
	Count  uint64
	Length int
}

func waitText(i int) string {
	if i == len(engine.WaitBounds) {
		return "longer"
	}
	d := engine.WaitBounds[i]
	if d == time.Minute {
		return "under 1 min"
	}
	return "under " + strings.NewReplacer("ms", " ms", "s", " s").Replace(d.String())
}

// curve is a figure over ten minutes, in a plot of 600 by 40.
type curve struct {
	Name      string
	Now, Most int
	Path      string
	Unknown   []stretch // no client looked then
}

type stretch struct{ X, Width int }

// Curves are what was held and waited for.
func (o *overview) Curves() []curve {
	return []curve{
		o.curve("held here", o.Held, func(s sample) int { return s.Held }),
		o.curve("callers that wait", o.Waiters, func(s sample) int { return s.Wait }),
	}
}

func (o *overview) curve(name string, now int, of func(sample) int) curve {
	c := curve{Name: name, Now: now}
	for _, s := range o.History {
		c.Most = max(c.Most, of(s))
	}
	var path strings.Builder
	known := 0 // up to where
	x := func(at time.Time) int { return min(max(600-int(o.At.Sub(at).Seconds()), 0), 600) }
	for i, s := range o.History {
		end := s.until.Add(sampleEvery)
		if i+1 < len(o.History) && o.History[i+1].At.Sub(s.until) <= sampleLasts {
			end = o.History[i+1].At
		}
		from, to := x(s.At), x(end)
		if from-known > 1 {
			c.Unknown = append(c.Unknown, stretch{known, from - known})
		}
		known = to
		if y := 39 - 37*of(s)/max(c.Most, 1); to > from {
			fmt.Fprintf(&path, "M%d 40V%dH%dV40Z", from, y, to)
		}
	}
	if known < 600 {
		c.Unknown = append(c.Unknown, stretch{known, 600 - known})
	}
	c.Path = path.String()
	return c
}

// figures are the counters of a manager that the page shows.
var figures = []struct {
	name  string
	of    func(*holdfast.Stats) *uint64
	alarm bool   // it should not happen
	line  string // of the log: what has happened
}{
	{"lost leases", func(s *holdfast.Stats) *uint64 { return &s.Lost }, false, ""},
	{"failed renewals", func(s *holdfast.Stats) *uint64 { return &s.RenewalFailures }, true, "renewal failed, trying again"},
	{"outages of Redis", func(s *holdfast.Stats) *uint64 { return &s.Outages }, true, "redis does not answer"},
	{"lost pub/sub connections", func(s *holdfast.Stats) *uint64 { return &s.Reconnects }, true, "pub/sub connection lost; polling until it is restored"},
	{"pub/sub connections that brought no messages", func(s *holdfast.Stats) *uint64 { return &s.Unheard }, true, "messages do not arrive; polling until they do"},
	{"requests in trouble", func(s *holdfast.Stats) *uint64 { return &s.Troubles }, false, ""},
	{"polls without a message", func(s *holdfast.Stats) *uint64 { return &s.Polls }, false, ""},
	{"remote hand-offs", func(s *holdfast.Stats) *uint64 { return &s.Granted }, false, ""},
	{"local hand-offs", func(s *holdfast.Stats) *uint64 { return &s.HandedOff }, false, ""},
	{"re-entries", func(s *holdfast.Stats) *uint64 { return &s.Reentered }, false, ""},
	{"releases", func(s *holdfast.Stats) *uint64 { return &s.Released }, false, ""},
	{"renewals", func(s *holdfast.Stats) *uint64 { return &s.Renewals }, false, ""},
	{"commands to Redis", func(s *holdfast.Stats) *uint64 { return &s.Commands }, false, ""},
}

// counter is one of them.
type counter struct {
	Name       string  `json:"name"`
	Total      uint64  `json:"total"`
	LastMinute uint64  `json:"lastMinute"` // or since the first look at the page, if that is less
	PerSecond  float64 `json:"perSecond"`
	alarm      bool
	line       string
}

// Alarm reports whether it should not have happened.
func (c counter) Alarm() bool { return c.alarm && c.LastMinute > 0 }

// rates remembers the figures of a minute of looks. The zero value is ready.
type rates struct {
	looks []figuresAt // guarded by handler.mu; a second apart or more, and the first is a minute old
}

type figuresAt struct {
	at    time.Time
	stats holdfast.Stats
}

// add takes a look, and returns what has changed in a minute.
func (r *rates) add(all holdfast.Stats, now time.Time) []counter {
	if n := len(r.looks); n == 0 || now.Sub(r.looks[n-1].at) >= time.Second {
		r.looks = append(r.looks, figuresAt{now, all})
	}
	for len(r.looks) > 1 && now.Sub(r.looks[1].at) >= time.Minute {
		r.looks = r.looks[1:]
	}
	from := r.looks[0]
	counters := make([]counter, 0, len(figures))
	for _, f := range figures {
		c := counter{Name: f.name, Total: *f.of(&all), alarm: f.alarm, line: f.line}
		if before := *f.of(&from.stats); c.Total > before {
			c.LastMinute = c.Total - before
			if took := now.Sub(from.at); took > 0 {
				c.PerSecond = float64(c.LastMinute) / took.Seconds()
			}
		}
		counters = append(counters, c)
	}
	return counters
}

// sum adds the counters of two managers.
func sum(a, b holdfast.Stats) holdfast.Stats {
	for _, f := range figures {
		*f.of(&a) += *f.of(&b)
	}
	return a
}
