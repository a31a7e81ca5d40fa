package chaos

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/judge"
)

// The election: each process has a candidate and an observer.

// seatName is its name.
const seatName = "chaos:seat"

// record begins the key of what the leader says of itself.
const record = "holdfast_leader:"

// election is its kind. It is not among Kinds: its lock is taken by Campaign, and given back by Resign.
var election = Kind{Name: "election", Fenced: true}

func (w *worker) election() *holdfast.Election { return w.m.Election(seatName, holdfast.WithLinger(0)) }

// lead campaigns, says something else, and resigns, again and again.
func (w *worker) lead() {
	e := w.election()
	for w.stop.Err() == nil {
		w.pause(20 * time.Millisecond)
		if w.rng.IntN(2) == 0 {
			w.pause(3 * time.Second) // now and then none leads for longer than a message takes
		}
		o := &Op{Proc: w.Proc, Worker: w.n, Do: Lock, Name: seatName}
		w.rec.begin(o)
		o.Value = fmt.Sprintf("p%d#%d", o.Proc, o.ID)
		ctx, cancel := context.WithTimeout(w.stop, 8*time.Second)
		term, err := e.Campaign(ctx, o.Value)
		returned := time.Now()
		cancel()
		if o.Result, o.Detail = resultOf(err); err == nil {
			o.Token, o.Deadline = term.Number(), at(term.Lease().Deadline())
		}
		w.rec.end(o, returned)
		if err != nil {
			continue
		}
		w.pause(30 * time.Millisecond)
		if w.rng.IntN(2) == 0 {
			p := w.about(Proclaim, o)
			p.Value = o.Value + " again"
			w.rec.begin(p)
			err := term.Proclaim(w.stop, p.Value)
			p.Result, p.Detail = resultOf(err)
			w.rec.end(p, time.Now())
		}
		if w.rng.IntN(20) == 0 && !w.calm.Load() {
			w.pause(3 * ttl / 2)
		}
		w.release(&held{lease: term.Lease(), op: o, resign: term.Resign})
	}
}

// observe records whom the process is told of.
func (w *worker) observe() {
	for l, err := range w.election().Observe(w.stop) {
		if err != nil {
			continue
		}
		o := &Op{Proc: w.Proc, Worker: w.n, Do: Observed, Name: seatName, Result: OK, Token: l.Term, Value: l.Value, Owner: l.Owner}
		w.rec.begin(o)
		w.rec.end(o, time.Now())
	}
}

// tenure is who led, as far as Redis knew, from a time until another at the latest.
type tenure struct {
	judge.Seat
	from, until int64
}

// sit takes note of who leads when the lock, or the record, has been written. By hi that was so.
func (t *trial) sit(l *lock, hi int64, told bool) {
	seat := judge.ReadSeat(t.redis.Do, &l.Lock)
	if seat != l.Seat {
		l.tenures[len(l.tenures)-1].until = hi
		l.tenures = append(l.tenures, tenure{seat, t.at, never})
		l.told = told
	}
	l.Seat = seat
}

// led reports whether one of these led at a time from one to another.
func (l *lock) led(from, to int64, is func(judge.Seat) bool) bool {
	return slices.ContainsFunc(l.tenures, func(x tenure) bool { return x.from <= to && x.until >= from && is(x.Seat) })
}

// Look also judges the records of terms, and what observers were told.
func (t *trial) Look(l *judge.Lock) {
	t.Judge.Look(l)
	of, _ := l.Shell.(*lock)
	if of == nil || of.kind != &election || t.at >= t.h.Quiesced {
		return
	}
	for _, c := range l.Claims {
		o := c.Shell.(*Op)
		says := t.says[id{o.Proc, o.ID}]
		if !of.led(t.at, t.at, func(s judge.Seat) bool { return s.Term == o.Token && slices.Contains(says, s.Value) }) {
			t.Recorded(l, c, o.Token, says...)
		}
	}
	for _, p := range t.procs {
		if x := of.observers[p.ID]; x != nil && p.Died > t.at {
			t.Observes(l, x, of.told, 0)
		}
	}
}

// observed is called when an observer was told of a leader, or of none.
func (t *trial) observed(l *lock, p *party, o *Op) {
	x, since := l.observers[o.Proc], p.Born
	if x == nil {
		x = &judge.Observer{Process: p, Who: fmt.Sprintf("%v's observer", p), Since: t.since(o.Call)}
		l.observers[o.Proc] = x
	} else {
		since = l.heard[o.Proc]
	}
	l.heard[o.Proc] = o.Return
	said := judge.Seat{Owner: o.Owner, Term: o.Token, Value: o.Value}
	t.Named(&l.Lock, x.Who, said, func(judge.Seat) bool {
		return l.led(since, o.Return, func(s judge.Seat) bool { return s == said })
	})
	t.Observed(&l.Lock, x, said)
}

// writesRecord reports whether a transaction says something of a leader.
func writesRecord(w *written) bool {
	return slices.ContainsFunc(w.commands, func(cmd []string) bool { return strings.HasPrefix(cmd[1], record) })
}
