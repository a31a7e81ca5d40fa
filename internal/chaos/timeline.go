package chaos

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"slices"
	"time"
)

//go:embed timeline.html
var timelineText string

var timelineTemplate = template.Must(template.New("timeline").Parse(timelineText))

// scale is the time that one pixel of the timeline stands for, around how much is shown
// before and after a moment.
const (
	scale  = 500 * time.Microsecond
	around = 2 * time.Second
)

type (
	timeline struct {
		Seed     uint64
		From, To time.Duration
		Scale    time.Duration
		Width    int64
		Ticks    []bar
		Lanes    []*lane
		Page     string
	}
	lane struct {
		Label string
		Bars  []bar
	}
	bar struct {
		X, W               int64
		Class, Title, Text string
	}
)

// Timeline draws the seconds around a moment: faults, what Redis held, and what each
// caller asked and was promised.
func (r *Report) Timeline(w io.Writer, moment int64) error {
	h := r.History
	window := Span{max(h.Start, moment-int64(around)), min(h.End, moment+int64(around))}
	t := &timeline{
		Seed: h.Seed, From: time.Duration(window.Lo - h.Start), To: time.Duration(window.Hi - h.Start),
		Scale: scale, Width: (window.Hi - window.Lo) / int64(scale), Page: r.String(),
	}
	for at := time.Duration(0); at <= t.To-t.From; at += 100 * time.Millisecond {
		t.Ticks = append(t.Ticks, bar{X: int64(at / scale), Text: fmt.Sprintf("%.1f s", (t.From + at).Seconds())})
	}
	byLabel := make(map[string]*lane)
	add := func(label string, s Span, class, title, text string) {
		if s.Hi < window.Lo || s.Lo > window.Hi {
			return
		}
		l := byLabel[label]
		if l == nil {
			l = &lane{Label: label}
			byLabel[label] = l
			t.Lanes = append(t.Lanes, l)
		}
		lo, hi := max(s.Lo, window.Lo), min(s.Hi, window.Hi)
		title = fmt.Sprintf("%s\n%v to %v", title, time.Duration(s.Lo-h.Start), time.Duration(s.Hi-h.Start))
		l.Bars = append(l.Bars, bar{(lo - window.Lo) / int64(scale), (hi - lo) / int64(scale), class, title, text})
	}
	for _, v := range r.Violations {
		add(" violations", Span{v.At, v.At}, "violation", v.String(), v.Rule)
	}
	for _, f := range slices.Concat(h.Faults, h.Stalls) {
		title := fmt.Sprintf("%s, client %d %s", f.Kind, f.Proc, f.Name)
		add(" faults", Span{f.Start, f.End}, "fault", title, f.Kind)
	}
	for name, holds := range h.Truth.Holds {
		for _, o := range holds {
			add("Redis "+name, Span{o.Start.Lo, o.End.Hi}, "hold", fmt.Sprintf("%s, ended by %s", o.Owner, o.EndedBy), h.nameOf(o.Owner))
		}
	}
	for name, leases := range h.Leases() {
		for _, l := range leases {
			add(caller(l.Acquire), Span{l.From, l.To}, "claim", name+" "+l.String(), "")
		}
	}
	for _, o := range h.Ops {
		class := string(o.Result)
		if o.Result == "" {
			class = "none"
		}
		add(caller(o), Span{o.Call, o.Return}, class, o.Name+" "+o.String(), string(o.Do)+" "+o.Name)
	}
	slices.SortFunc(t.Lanes, func(a, b *lane) int {
		if a.Label < b.Label {
			return -1
		}
		return 1
	})
	return timelineTemplate.Execute(w, t)
}

func caller(o *Op) string { return fmt.Sprintf("client %d/%d", o.Proc, o.Worker) }

// nameOf shortens an owner id to the client's number and the rest.
func (h *History) nameOf(owner string) string {
	o := Hold{Owner: owner}
	for _, p := range h.Processes {
		if p.Prefix == o.prefix() {
			return fmt.Sprintf("client %d%s", p.ID, owner[len(p.Prefix):])
		}
	}
	return owner
}
