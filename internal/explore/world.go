package explore

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast/internal/command"
	"github.com/holdfast-go/holdfast/internal/lock"
	"github.com/holdfast-go/holdfast/internal/protocol"
	"github.com/holdfast-go/holdfast/internal/renewal"
	"github.com/holdfast-go/holdfast/internal/vredis"
	"github.com/holdfast-go/holdfast/internal/wire"
)

// epoch is when a world begins.
var epoch = time.UnixMilli(1_800_000_000_000)

// World is a server and processes, at one moment. Take changes it.
type World struct {
	plan    *Plan
	redis   *redis
	now     time.Time
	db      *vredis.Database
	procs   []*process
	callers []*caller
	flights []*flight // requests that have been sent, in this order

	faults, late int        // that have happened
	sets         int        // how many of the plan's Sets have been done
	cut          time.Time  // when the last of them was
	deferred     []func()   // see after
	random       *rand.Rand // what the library draws; nil: always the same
	judge        *court
	log          func(format string, args ...any) // nil: none
}

func newWorld(plan *Plan, r *redis) *World {
	w := &World{plan: plan, redis: r, now: epoch, db: &r.empty}
	for i := range plan.processes {
		w.procs = append(w.procs, newProcess(w, i))
	}
	for i := range plan.Callers {
		w.callers = append(w.callers, &caller{w: w, id: i, Caller: &plan.Callers[i]})
	}
	w.judge = newCourt(w)
	return w
}

// chance is what the library draws.
func (w *World) chance(n int64) int64 {
	if w.random == nil {
		return n - 1
	}
	return w.random.Int64N(n)
}

func (w *World) note(format string, args ...any) {
	if w.log != nil {
		w.log(format, args...)
	}
}

// listening are the channels that have listeners, each as often as it has.
func (w *World) listening() (all []string) {
	for _, p := range w.procs {
		if p.state == dead {
			continue
		}
		if p.listening && !p.uncounted {
			all = append(all, wire.Inbox(p.says.Owners))
		}
		for n, hears := range p.hears {
			if hears {
				all = append(all, w.plan.Locks[n].keys.Channel())
			}
		}
	}
	for _, c := range w.callers {
		if c.Java && c.phase == waiting {
			all = append(all, c.of().keys.Channel())
		}
	}
	return all
}

// run has the server run a script.
func (w *World) run(script *command.Script, args []any) any {
	a := w.redis.run(w.db, w.now, w.listening(), script, args)
	w.db = a.after
	for _, m := range a.sent {
		w.post(m)
	}
	return a.reply
}

// post puts a message on its way to those who hear it.
func (w *World) post(m vredis.Message) {
	for _, p := range w.procs {
		if p.state == dead {
			continue
		}
		if p.listening && m.Channel == wire.Inbox(p.says.Owners) {
			p.mail = append(p.mail, mail{-1, m.Payload})
		}
		for n, hears := range p.hears {
			if hears && m.Channel == w.plan.Locks[n].keys.Channel() {
				p.mail = append(p.mail, mail{n, m.Payload})
			}
		}
	}
	for _, c := range w.callers {
		if c.Java && c.phase == waiting && m.Channel == c.of().keys.Channel() {
			c.heard = true
		}
	}
}

// flight is a copy of a request from when it is sent until its end.
type flight struct {
	p        *process
	lock     *lock.Lock   // of the next
	of       lock.Request // nil: it is one of the next three
	tries    []*lock.Try  // of a Multi
	renews   *lock.Hold
	extends  *lock.Hold
	ttl      time.Duration // of the last two
	copy     lock.Copy
	script   *command.Script
	args     []any
	sent     time.Time
	patience time.Duration
	acks     bool // it waits for the acknowledgement of a replica

	ran      bool // the server has executed it, or its connection has ended
	reply    any
	outcome  lock.Outcome
	acked    int
	overdue  bool
	stranded bool
	ghost    bool // no process waits for its answer
}

// send sends the next copy of a request.
func (w *World) send(p *process, s *lock.Send) {
	f := &flight{p: p, lock: s.Lock, of: s.Request, copy: s.Copy, sent: w.now, patience: s.Patience}
	if t, ok := s.Request.(*lock.Try); ok {
		w.judgeTry(p, t)
	}
	var c command.Call
	p.says.Ask(&c, s.Request)
	f.script, f.args, f.acks = c.Script, c.Args, c.Acks != nil
	w.flights = append(w.flights, f)
}

// execute has the server execute a request.
func (w *World) execute(f *flight) {
	w.judge.asks(f)
	f.reply, f.ran, f.outcome = w.run(f.script, f.args), true, lock.Answered
	if f.acks {
		f.acked = 1
	}
	if err, failed := f.reply.(error); failed {
		f.reply, f.outcome = nil, lock.Unknown
		w.judge.fails("odd error", "the server says: %v", err)
	}
	if f.ghost {
		w.land(f)
	}
}

// land takes a request out that has ended.
func (w *World) land(f *flight) {
	w.flights = slices.DeleteFunc(w.flights, func(o *flight) bool { return o == f })
}

// answer gives the process the end of a request.
func (w *World) answer(f *flight) {
	w.land(f)
	p := f.p
	r := command.Reply{Value: f.reply, Outcome: f.outcome, Sent: f.sent}
	if f.acks && f.acked == 0 {
		r.Unacked = &command.Unacked{Want: 1}
	}
	if f.outcome != lock.Answered {
		r.Err = errBroken
	}
	switch {
	case f.tries != nil:
		for _, t := range f.tries {
			x := protocol.ReadTogether(r)
			p.event(t.Hold.Lock, func(m *lock.Moment) { t.Replied(m, &lock.Copy{}, &x) })
		}
	case f.renews != nil, f.extends != nil:
		p.renewed(f, r)
	default:
		x := p.says.Read(f.of, f.script, r)
		other := x.Next
		if other != nil && other.Lock == f.lock {
			other = nil
		}
		if other != nil {
			x.Next = nil
		}
		w.judgeReply(p, f, &x)
		p.event(f.lock, func(m *lock.Moment) { f.of.Replied(m, &f.copy, &x) })
		w.judge.acknowledged(f)
		if other != nil { // a mutex and a fair lock of one name have a queue in Redis
			p.event(other.Lock, func(m *lock.Moment) { other.Lock.Noticed(m, other, x.Notice) })
		}
	}
}

var errBroken = fmt.Errorf("the connection has ended")

// renewed is for the end of a renewal, or an Extend.
func (p *process) renewed(f *flight, r command.Reply) {
	h := f.renews
	if h == nil {
		h = f.extends
	}
	codes, ok := r.Value.([]any)
	if !ok || len(codes) != 1 {
		if f.renews != nil {
			p.schedule.Change(&h.Item, renewal.Plan{What: renewal.Retry})
		}
		return
	}
	l := h.Lock
	switch codes[0] {
	case int64(protocol.RenewDone):
		p.event(l, func(m *lock.Moment) { l.Prolonged(m, h, f.sent, f.ttl) })
	case int64(protocol.RenewGone):
		p.event(l, func(m *lock.Moment) { l.NotFound(m, h, lock.LostDeleted) })
	case int64(protocol.RenewStolen):
		p.event(l, func(m *lock.Moment) { l.NotFound(m, h, lock.LostStolen) })
	default:
		p.schedule.Change(&h.Item, renewal.Plan{What: renewal.Retry})
	}
}

// isLate tells the process that an answer takes too long.
func (w *World) isLate(f *flight) {
	f.overdue, w.judge.slow = true, true
	w.each(f, lock.Request.Overdue)
}

// strand tells the process that the connection of a request is dead.
func (w *World) strand(f *flight) {
	f.stranded = true
	w.each(f, lock.Request.Stranded)
}

func (w *World) each(f *flight, event func(lock.Request, *lock.Moment, *lock.Copy)) {
	switch {
	case f.of != nil:
		f.p.event(f.lock, func(m *lock.Moment) { event(f.of, m, &f.copy) })
	default:
		for _, t := range f.tries {
			f.p.event(t.Hold.Lock, func(m *lock.Moment) { event(t, m, &lock.Copy{}) })
		}
	}
}

// haunt leaves a copy of a request behind that no process waits for.
func (w *World) haunt(f *flight) {
	ghost := *f
	ghost.ghost, ghost.ran, ghost.overdue = true, false, true
	w.flights = append(w.flights, &ghost)
}
