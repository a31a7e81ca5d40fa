package debug

import (
	"sync"
	"time"

	"github.com/holdfast-go/holdfast"
)

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
	mu    sync.Mutex
	looks []figuresAt // guarded by mu; a second apart or more, and the first is a minute old
}

type figuresAt struct {
	at    time.Time
	stats holdfast.Stats
}

// add takes a look, and returns what has changed in a minute.
func (r *rates) add(all holdfast.Stats, now time.Time) []counter {
	r.mu.Lock()
	if n := len(r.looks); n == 0 || now.Sub(r.looks[n-1].at) >= time.Second {
		r.looks = append(r.looks, figuresAt{now, all})
	}
	for len(r.looks) > 1 && now.Sub(r.looks[1].at) >= time.Minute {
		r.looks = r.looks[1:]
	}
	from := r.looks[0]
	r.mu.Unlock()
	counters := make([]counter, 0, len(figures))
	for _, f := range figures {
		c := counter{Name: f.name, Total: *f.of(&all), alarm: f.alarm, line: f.line}
		if before := *f.of(&from.stats); c.Total > before { // another request can have looked since
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
