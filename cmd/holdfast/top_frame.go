package main

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/holdfast-go/holdfast/internal/wire"
)

// Columns by which top sorts, the largest first; of TTLs the smallest.
const (
	sortWaiting  = "waiting"
	sortHandoffs = "handoffs"
	sortAge      = "age"
	sortTTL      = "ttl"
)

var sorts = []string{sortWaiting, sortHandoffs, sortAge, sortTTL}

// Locks that top shows.
const (
	filterAll     = "all"
	filterWaiting = "with waiters"
	filterStale   = "with something wrong"
)

var filters = []string{filterAll, filterWaiting, filterStale}

// rateOver is the time over which remote hand-offs are counted.
const rateOver = 10 * time.Second

// sightings remembers what was seen of each lock. It belongs to one goroutine.
type sightings struct {
	first time.Time // of all looks
	locks map[string]*track
}

func newSightings() *sightings { return &sightings{locks: make(map[string]*track)} }

// track is what was seen of one lock.
type track struct {
	owner   string
	token   uint64
	since   time.Time // when the owner was seen first
	changes []change  // of the last rateOver, and the last look before it
}

// change is how often the lock has changed hands by a time, as far as was seen.
type change struct {
	at    time.Time
	count uint64
}

// changed returns how often the lock has changed hands since the last look, as far as it shows. A remote hand-off reserves
// wire.TokensPerGrant tokens, and seldom a few more.
func (tr *track) changed(owner string, token uint64) (n uint64) {
	if len(tr.changes) == 0 {
		return 0
	}
	if owner != tr.owner {
		n = 1
	}
	if tr.token > 0 && token > tr.token {
		n = max(n, (token-tr.token)/wire.TokensPerGrant)
	}
	return n
}

// sighting is a lock, and what two looks or more have told of it.
type sighting struct {
	look
	age      time.Duration // for how long the first holder has been seen
	older    bool          // the holder was there at the first look
	handoffs float64       // per second; -1: not known yet
}

// add takes a look at all locks, and forgets those that are gone.
func (s *sightings) add(looks []look, now time.Time) []sighting {
	if s.first.IsZero() {
		s.first = now
	}
	all, kept := make([]sighting, 0, len(looks)), make(map[string]*track, len(looks))
	for _, l := range looks {
		tr := s.locks[l.Name]
		if tr == nil {
			tr = &track{since: now}
		}
		kept[l.Name] = tr
		owner := ""
		if len(l.Holders) > 0 {
			owner = l.Holders[0].Owner
		}
		count := tr.changed(owner, l.Token)
		if n := len(tr.changes); n > 0 {
			count += tr.changes[n-1].count
		}
		tr.token = l.Token
		if owner != tr.owner {
			tr.owner, tr.since = owner, now
		}
		tr.changes = append(tr.changes, change{now, count})
		for len(tr.changes) > 2 && now.Sub(tr.changes[1].at) >= rateOver {
			tr.changes = tr.changes[1:]
		}
		sight := sighting{look: l, age: now.Sub(tr.since), older: tr.since.Equal(s.first), handoffs: -1}
		if from := tr.changes[0]; now.After(from.at) {
			sight.handoffs = float64(count-from.count) / now.Sub(from.at).Seconds()
		}
		all = append(all, sight)
	}
	s.locks = kept
	return all
}

// shown returns the locks to show, in their order.
func (t *top) shown() []sighting {
	var shown []sighting
	for _, l := range t.looks {
		if (t.filter == filterWaiting && l.waiters() == 0) || (t.filter == filterStale && !l.wrong()) {
			continue
		}
		shown = append(shown, l)
	}
	slices.SortFunc(shown, func(a, b sighting) int {
		order := 0
		switch t.sort {
		case sortHandoffs:
			order = cmp.Compare(b.handoffs, a.handoffs)
		case sortAge:
			order = cmp.Compare(b.age, a.age)
		case sortTTL:
			order = cmp.Compare(uint64(a.TTL), uint64(b.TTL)) // none is the longest
		}
		return cmp.Or(order, cmp.Compare(b.waiters(), a.waiters()), strings.Compare(a.Name, b.Name))
	})
	return shown
}

// frame is what the screen shows, in lines. Lines and columns that do not fit are cut; 0: all fit.
func (t *top) frame(width, height int) string {
	shown := t.shown()
	waiting, handoffs := 0, 0.0
	for _, l := range t.looks {
		waiting += l.waiters()
		handoffs += max(l.handoffs, 0)
	}
	head := fmt.Sprintf("%d locks are held, %d waiters, %.1f remote hand-offs/s   by %s, %s", len(t.looks), waiting, handoffs, t.sort, t.filter)
	foot := "s sort  f filter  u free a lock  q quit"
	footColour := ""
	switch {
	case t.prompt != nil:
		foot = "free which lock? type its name, or Esc: " + printable(*t.prompt)
	case t.fault != nil:
		foot, footColour = plain(t.fault), red
	case t.said != "":
		foot = t.said
	}
	if height == 0 && t.fault == nil { // there are no keys
		foot = ""
	}
	rows := len(shown)
	if height > 0 {
		rows = min(rows, max(height-4, 0)) // beside the head, the titles, and the foot with the line before it
	}
	var text bytes.Buffer
	table := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	servers := ""
	if slices.ContainsFunc(shown, sighting.several) {
		servers = "SERVERS\t"
	}
	fmt.Fprintln(table, "NAME\tKIND\tHOLDER\tAGE\tTTL\tWAITING\tHANDOFFS/S\t"+servers+"STATE")
	for _, l := range shown[:rows] {
		if servers != "" {
			servers = l.serversText() + "\t"
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%d\t%s\t%s%s\n", shorten(printable(l.Name), 48), l.Kind, l.holder(false),
			l.ageText(), seconds(l.TTL), l.waiters(), l.handoffsText(), servers, l.state())
	}
	_ = table.Flush() // into a buffer
	lines := strings.Split(strings.TrimSuffix(text.String(), "\n"), "\n")
	var frame strings.Builder
	put := func(colour, line string) {
		if width > 0 {
			line = shorten(line, width)
		}
		frame.WriteString(t.style.paint(colour, line) + "\n")
	}
	put("", head)
	put(bold, lines[0])
	for i, line := range lines[1:] {
		put(colourOf(shown[i].State), line)
	}
	if foot != "" {
		if hidden := len(shown) - rows; hidden > 0 {
			put("", fmt.Sprintf("and %d more", hidden))
		} else {
			put("", "")
		}
		put(footColour, foot)
	}
	return frame.String()
}

// ageText is how long the holder has been there, at least if it was there at the first look.
func (l sighting) ageText() string {
	text := l.age.Round(100 * time.Millisecond).String()
	if l.older {
		return "≥" + text
	}
	return text
}

func (l sighting) handoffsText() string {
	switch {
	case l.handoffs < 0:
		return "-"
	case l.handoffs == 0:
		return "0.0"
	case l.Token > 0:
		return fmt.Sprintf("~%.1f", l.handoffs)
	}
	return fmt.Sprintf("≥%.1f", l.handoffs) // changes between two looks are not seen
}
