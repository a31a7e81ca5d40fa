package explore

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast/internal/lock"
	"github.com/holdfast-go/holdfast/internal/protocol"
	"github.com/holdfast-go/holdfast/internal/renewal"
	"github.com/holdfast-go/holdfast/internal/wire"
)

// process is one process: its locks, and what runs for them, as plain data. It is the shell that internal/engine is in production.
type process struct {
	w    *World
	id   int
	says protocol.Process
	set  lock.Settings

	locks    []*lock.Lock // of each of the plan's; nil: no caller has come
	expected lock.Expected
	schedule renewal.Schedule[*lock.Hold]
	limits   []*lock.Limit
	pauses   []*lock.Repeated
	seen     map[string]uint64 // the highest fencing tokens, by lock
	numbers  uint64            // of owner ids
	pending  int               // what Close would wait for
	mail     []mail            // messages on their way, in this order
	hears    []bool            // of each lock, whether Redisson's channel is subscribed
	turn     []bool            // of each lock, whether it is the turn of one of Redisson's

	listening bool   // the inbox is subscribed
	uncounted bool   // at a server that counts no listener, and passes messages on
	session   uint64 // numbers the subscriptions
	relying   int    // requests under way that say that it hears
	state     life
	closed    bool
}

// life is whether a process does anything.
type life uint8

const (
	running life = iota
	stopped      // it goes on later
	dead
)

// mail is a message on its way to a process.
type mail struct {
	lock    int // Redisson's channel of that lock; -1: the inbox
	payload string
}

// firstNumber is below the numbers of owner ids, so that they are no other numbers.
const firstNumber = 1000

func newProcess(w *World, id int) *process {
	p := &process{w: w, id: id, numbers: firstNumber, session: 1}
	p.set = lock.Settings{
		Now: func() time.Time { return w.now }, Chance: w.chance,
		Epoch: epoch.Add(-time.Millisecond), Poll: polls, Slice: slice, ReadSlice: slice, Patience: patience,
		Aside: lock.AsideFor, Readmission: lock.Readmission, Turns: protocol.TurnsInARow, Unanswered: errUnanswered,
	}
	owners, _ := wire.PermitOwner(fmt.Sprintf("%08x000040008000%012x", id, 0)) // permits tell of whom they are
	p.says = protocol.Process{Owners: owners, Publish: "publish", Counted: true, Patience: patience, Knows: p}
	p.schedule = renewal.NewSchedule[*lock.Hold](p.set.Now)
	p.locks = make([]*lock.Lock, len(w.plan.Locks))
	p.hears, p.turn = make([]bool, len(p.locks)), make([]bool, len(p.locks))
	p.seen = map[string]uint64{}
	p.listening = !w.plan.Deaf
	return p
}

// lock returns the lock of that number, open for a caller.
func (p *process) lock(n int) *lock.Lock {
	if p.locks[n] == nil {
		of := &p.w.plan.Locks[n]
		p.locks[n] = new(lock.Lock)
		p.locks[n].Init(of.Kind, of.keys, n)
		if p.closed {
			m := p.begin()
			p.locks[n].Close(&m)
			p.end(p.locks[n], &m)
		}
	}
	l := p.locks[n]
	if l.IsOver() && !p.closed {
		l.Recall()
	}
	return l
}

// owner is the owner id of a hold.
func (p *process) owner(h *lock.Hold) string {
	return p.says.ID(h)
}

// begin begins an event of the process.
func (p *process) begin() (m lock.Moment) {
	m.Begin(p, &p.set)
	return m
}

// end performs the effects of an event of a lock.
func (p *process) end(l *lock.Lock, m *lock.Moment) {
	if x := m.Room; x != nil {
		p.pending += x.Report.More
		p.relying -= x.Unrelied
		if x.Saw > 0 {
			name := l.Keys.Lock.(string)
			p.seen[name] = max(x.Saw, p.seen[name])
		}
		for i := range x.Sends {
			p.w.send(p, &x.Sends[i])
		}
		for _, limit := range x.Limits {
			p.limits = slices.DeleteFunc(p.limits, func(o *lock.Limit) bool { return o == limit })
			if limit.Runs() {
				p.limits = append(p.limits, limit)
			}
		}
		for _, r := range x.Pauses {
			p.pauses = slices.DeleteFunc(p.pauses, func(o *lock.Repeated) bool { return o == r })
			if r.Resumes() != 0 {
				p.pauses = append(p.pauses, r)
			}
		}
		for _, a := range x.Answers {
			a.To.(*caller).answered(a.Verdict)
		}
		for i := range x.Ends {
			p.w.judgeEnd(p, &x.Ends[i])
		}
	}
	for w := m.Told; w != nil; {
		next := w.Next
		w.Shell.(*caller).told(w)
		w = next
	}
	if l == nil {
		return
	}
	n := l.Shell.(int)
	if !l.Listening {
		p.hears[n] = false
	}
	if l.Waiting() == 0 {
		p.turn[n] = false
	}
}

// event has a lock of the process handle an event.
func (p *process) event(l *lock.Lock, f func(m *lock.Moment)) {
	m := p.begin()
	f(&m)
	p.end(l, &m)
}

// unsure is the event that the inbox has begun to be heard.
func (p *process) unsure() {
	for _, l := range p.expected.Locks() {
		p.event(l, l.Unsure)
	}
}

// close closes the process's locks.
func (p *process) close() {
	p.closed = true
	for _, l := range p.locks {
		if l != nil {
			p.event(l, l.Close)
		}
	}
	for _, r := range slices.Clone(p.pauses) {
		p.event(r.Of(), func(m *lock.Moment) { r.Of().Resume(m, r) })
	}
}

// isIdle reports whether nothing is left to be done by the process.
func (p *process) isIdle() bool {
	for _, l := range p.locks {
		if l == nil {
			continue
		}
		if l.Waiting() > 0 || len(l.Holds()) > 0 {
			return false
		}
	}
	return p.pending == 0 && p.schedule.Len() == 0
}

// What package lock asks of the world, and protocol of the process.

var (
	errSilence    = errors.New("silence")
	errUnanswered = errors.New("unanswered")
)

func (p *process) Roughly() time.Duration { return p.w.now.Sub(p.set.Epoch) }
func (p *process) Silence() error         { return errSilence }

func (p *process) Number(n int) uint64 {
	p.numbers += uint64(n)
	return p.numbers - uint64(n) + 1
}

func (p *process) Facts() lock.Facts {
	f := lock.Facts{Inbox: lock.Unheard, Session: p.session}
	if p.listening {
		f.Inbox = lock.Heard
	}
	return f
}

func (p *process) OwnListeners(keys *wire.Keys) int64 {
	for n, l := range p.w.plan.Locks {
		if l.keys == keys && p.hears[n] {
			return 1
		}
	}
	return 0
}

func (p *process) Rely() lock.Facts {
	if p.listening {
		p.relying++
	}
	return p.Facts()
}

func (p *process) Expect(h *lock.Hold) *wire.Notice { return p.expected.Add(h) }
func (p *process) Forget(h *lock.Hold)              { p.expected.Drop(h) }

func (p *process) ClaimOf(n wire.Notice) *lock.Hold { return p.expected.ClaimOf(n, p.w.now) }

func (p *process) TokenSeen(keys *wire.Keys) uint64 { return p.seen[keys.Lock.(string)] }

func (p *process) Schedule(h *lock.Hold, x renewal.Plan) (deadline time.Time) {
	return p.schedule.Change(&h.Item, x)
}

func (p *process) Scheduled(h *lock.Hold) bool { return p.schedule.Has(&h.Item) }

func (p *process) Room() *lock.Effects { return new(lock.Effects) }
