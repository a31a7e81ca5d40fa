package sim

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/judge"
)

// Elections: candidates, what they say, and observers.

func seatOf(l holdfast.Leader) judge.Seat {
	return judge.Seat{Owner: l.Owner, Term: l.Term, Value: l.Value}
}

// seatsLocked judges the records of terms, and what observers were told.
func (j *court) seatsLocked(u *unit) {
	for _, x := range u.Claims {
		if c := x.Shell.(*claim); len(c.says) > 0 {
			j.Recorded(&u.Lock, x, c.term.Number(), c.says...)
		}
	}
	u.observers = slices.DeleteFunc(u.observers, func(o *judge.Observer) bool { p := o.Process.(*process); return p.dead || p.closed })
	for _, o := range u.observers {
		deaf := time.Duration(0)
		if p := o.Process.(*process); p.deafened > 0 {
			deaf = p.deafened + 3*time.Second
		}
		j.Observes(&u.Lock, o, !u.untold, deaf)
	}
}

// namedLocked judges an answer to p, which asked at a moment since began.
func (j *court) namedLocked(u *unit, p *process, began moment, said judge.Seat) {
	j.Named(&u.Lock, p.String(), said, func(said judge.Seat) bool {
		return p.looked(began, "leader", u.Name, func(l *look) bool { return l.seat == said }) != nil
	})
}

// observe has a process watch its seats until it ends.
func (p *process) observe() {
	for i := range p.locks {
		h := &p.locks[i]
		if h.seat == nil || p.slot >= len(p.w.plan.Processes) {
			continue
		}
		u := h.units[0]
		o := &judge.Observer{Process: p, Who: fmt.Sprintf("%v's observer", p), Since: p.w.now()}
		u.observers = append(u.observers, o)
		began := moment{at: p.w.now()}
		go func() {
			for l, err := range h.seat.Observe(p.ctx) {
				p.w.inTurn(p.slot, 15)
				p.w.mu.Lock()
				p.w.noteLocked("%s is told of %s in term %d, %q, %v", o.Who, l.Owner, l.Term, l.Value, err)
				if err == nil && !p.dead {
					p.w.judge.namedLocked(u, p, began, seatOf(l))
					p.w.judge.Observed(&u.Lock, o, seatOf(l))
				}
				began = moment{at: p.w.now()}
				p.w.mu.Unlock()
			}
		}()
	}
}

// campaign is a section as a leader.
func (k *worker) campaign(s *Step, h *handle) {
	ctx, cancel := k.limit(s)
	defer cancel()
	a := k.begin(s, h)
	value := k.String()
	term, err := h.seat.Campaign(holdfast.WithLabel(ctx, a.label), value)
	c := a.end(term.Lease(), err)
	if c == nil {
		return
	}
	c.term = term
	if own := h.seat.Term(); own != term && term.Lease().Valid() {
		k.w.fail("false leader", "%s leads in term %d, and its process says %d", c.Who, term.Number(), own.Number())
	}
	k.says(c, value)
	k.leader(h)
	k.work(c, s.Hold/2)
	if slices.Contains(s.Inside, Proclaim) { // two at a time, of which the second one counts; the first may go on after Resign
		k.w.running.Go(func() { k.proclaim(c, value+" again", false) })
		time.Sleep(time.Microsecond)
		k.proclaim(c, value+" at last", true)
	}
	if !s.Over {
		k.work(c, s.Hold/2)
	}
	k.unlock(c)
}

// says notes what Redis has confirmed.
func (k *worker) says(c *claim, value string) {
	k.w.mu.Lock()
	defer k.w.mu.Unlock()
	c.says = []string{value}
	k.w.judge.lookLocked()
}

// proclaim publishes another value, the last of its term or an earlier one.
func (k *worker) proclaim(c *claim, value string, last bool) {
	w, n, began := k.w, k.n+8, c.p.moment()
	if last {
		n = k.n
	}
	w.mu.Lock()
	c.says = append(c.says, value)
	w.mu.Unlock()
	err := c.term.Proclaim(c.p.ctx, value)
	w.inTurn(c.p.slot, n)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.noteLocked("%s proclaims %q: %v", c.Who, value, err)
	switch {
	case c.p.dead:
	case c.p.tardyLocked(began, c.p.askLocked()):
		w.judge.failLocked("late return", "Proclaim of %s took %v", c.Who, c.p.ranLocked(began))
	case err == nil && last:
		c.says = []string{value}
	case errors.Is(err, holdfast.ErrUnavailable):
		w.judge.unavailableLocked(c.p, c.units, c.Who, err)
	case err != nil && !(!last && errors.Is(err, holdfast.ErrNotHeld)) && !errors.Is(err, holdfast.ErrLeaseLost) && !errors.Is(err, holdfast.ErrClosed):
		w.judge.failLocked("odd error", "Proclaim of %s: %v", c.Who, err)
	}
}

// leader asks who leads.
func (k *worker) leader(h *handle) {
	began := k.p.moment()
	l, err := h.seat.Leader(k.p.ctx)
	k.inTurn()
	w := k.w
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case k.p.dead:
	case err == nil, errors.Is(err, holdfast.ErrNoLeader):
		w.judge.namedLocked(h.units[0], k.p, began, seatOf(l))
		if self := strings.HasPrefix(l.Owner, k.p.prefix[0]); err == nil && self != l.Self {
			w.judge.failLocked("false leader", "%v is told of %+v", k, l)
		}
	case errors.Is(err, holdfast.ErrUnavailable):
		w.judge.unavailableLocked(k.p, h.units, k.String(), err)
	case !errors.Is(err, holdfast.ErrClosed):
		w.judge.failLocked("odd error", "Leader of %v: %v", k, err)
	}
}

// elections draws candidates who campaign again and again.
func (d *draft) elections() {
	hold := one(d, 3*time.Millisecond, 30*time.Millisecond, 300*time.Millisecond)
	d.Locks = []Lock{{Name: "seat", Kind: Mutex, Fencing: true, Seat: true, Lease: one(d, 0, longestLease)}}
	d.Length = min(max(100*hold, 3*time.Second), 20*time.Second)
	for range 2 + d.IntN(2) {
		p := Process{Start: d.upTo(20 * time.Millisecond)}
		for range 1 + d.IntN(3) {
			steps := make([]Step, 20+d.IntN(60))
			for i := range steps {
				s := Step{After: d.upTo(4 * hold), Way: ByCampaign, Hold: d.upTo(4 * hold), Over: d.IntN(3) == 0}
				if d.IntN(3) == 0 {
					s.Limit, s.Cancel = 1+d.upTo(one(d, 10*time.Millisecond, 200*time.Millisecond, 2*time.Second)), d.IntN(2) == 0
				}
				if d.IntN(2) == 0 {
					s.Inside = []Inner{Proclaim}
				}
				steps[i] = s
			}
			p.Workers = append(p.Workers, Worker{steps})
		}
		d.Processes = append(d.Processes, p)
	}
}
