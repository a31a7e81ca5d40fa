package explore

import (
	"slices"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/internal/lock"
	"github.com/holdfast-go/holdfast/internal/protocol"
	"github.com/holdfast-go/holdfast/internal/validity"
)

// due returns what is to happen next in the process because its time has come; nil: nothing. With taken, the schedule hands it out.
func (p *process) due(taken bool) func() {
	now := p.w.now
	for n, l := range p.locks {
		if l != nil && l.Rings != 0 && !p.set.Epoch.Add(l.Rings).After(now) {
			return func() {
				p.turn[n] = false
				p.event(l, l.WakeUp)
			}
		}
	}
	for _, x := range p.limits {
		if !x.At.After(now) {
			return func() {
				p.limits = slices.DeleteFunc(p.limits, func(o *lock.Limit) bool { return o == x })
				p.event(x.Of(), func(m *lock.Moment) { x.Of().ReachLimit(m, x) })
			}
		}
	}
	for _, r := range p.pauses {
		if !p.set.Epoch.Add(r.Resumes()).After(now) {
			return func() { p.event(r.Of(), func(m *lock.Moment) { r.Of().Resume(m, r) }) }
		}
	}
	for _, f := range p.w.flights {
		if f.p == p && !f.ghost && !f.overdue && !f.sent.Add(f.patience).After(now) {
			return func() { p.w.isLate(f) }
		}
	}
	at, some := p.schedule.Next()
	if !some || at.After(now) {
		return nil
	}
	if !taken {
		return func() {}
	}
	renew, expired := p.schedule.Due(now)
	return func() { p.scheduled(renew, expired) }
}

// scheduled is what the schedule hands out.
func (p *process) scheduled(renew, expired []*lock.Hold) {
	for _, h := range expired {
		p.event(h.Lock, func(m *lock.Moment) { h.Lock.Expire(m, h) })
	}
	var standing []*lock.Hold
	for _, h := range renew {
		if h.IsStanding() {
			standing = append(standing, h)
			continue
		}
		if ttl, ok := h.Renewal(p.w.now); ok {
			script := protocol.RenewScript(h.Kind)
			args := p.says.Renew(script, ttl, h)
			p.w.flights = append(p.w.flights, &flight{p: p, renews: h, ttl: ttl, script: script, args: args, sent: p.w.now, patience: validity.AskPatience(0)})
		} else {
			p.w.judge.fails("left behind", "process %d still renews hold %d, which has ended", p.id, h.Number)
		}
	}
	for _, l := range p.locks {
		claims := slices.DeleteFunc(slices.Clone(standing), func(h *lock.Hold) bool { return h.Lock != l })
		if len(claims) > 0 {
			p.event(l, func(m *lock.Moment) { l.Keep(m, claims) })
		}
	}
}

// next is when something happens next by the passing of time.
func (w *World) next() (at time.Time, some bool) {
	add := func(t time.Time) {
		if t.After(w.now) && (!some || t.Before(at)) {
			at, some = t, true
		}
	}
	for _, p := range w.procs {
		if p.state == dead {
			continue
		}
		for _, l := range p.locks {
			if l != nil && l.Rings != 0 {
				add(p.set.Epoch.Add(l.Rings))
			}
		}
		for _, x := range p.limits {
			add(x.At)
		}
		for _, r := range p.pauses {
			add(p.set.Epoch.Add(r.Resumes()))
		}
		if t, ok := p.schedule.Next(); ok {
			add(t)
		}
	}
	for _, f := range w.flights {
		if !f.ghost && !f.overdue {
			add(f.sent.Add(f.patience))
		}
	}
	if t, ok := w.nextEnd(); ok {
		add(t)
	}
	if w.isCut() {
		add(w.cut.Add(cutFor))
	}
	for _, k := range w.db.Keys(w.now) {
		if k.Expires != 0 && k.Kind != "list" && !strings.Contains(k.Name, "timeout:{") {
			add(time.UnixMilli(k.Expires))
		}
	}
	return at, some
}

// outlives reports whether a request would still be on its way at a time. None comes later than a tombstone lasts.
func (w *World) outlives(at time.Time) bool {
	return slices.ContainsFunc(w.flights, func(f *flight) bool { return !f.ran && at.Sub(f.sent) >= lock.Burial })
}
