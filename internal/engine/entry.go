package engine

import (
	"context"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/internal/command"
	"github.com/holdfast-go/holdfast/internal/lock"
	"github.com/holdfast-go/holdfast/internal/wire"
)

// entry is a lock name in use: a lock.Lock, which decides, with its mutex and what runs for it. An event begins a moment, takes mu,
// calls one method of the lock, and ends in Engine.end, which performs what the moment asks for (event.go).
//
// Lock order: entry.mu, then one of Engine.mu, subscriber.mu, inbox.mu, and the locks
// of the scheduler and the executor. None is held over I/O or user code.
type entry struct {
	engine *Engine
	given  *string // the name as given to the handle that made it; nil: that is the name as Redis sees it. Not changed

	mu   sync.Mutex // guards the following, the holds and their leases
	lock lock.Lock
	runs *running // nil: nothing has run for it yet

	listing listing // guarded by Engine.mu
}

// running is what runs for an entry, and what is counted for it. Few entries have it: no caller waits for the others.
type running struct {
	timer   *time.Timer          // calls wakeUp; nil: it never has
	look    *time.Timer          // calls look, while a caller waits to know that another owner wants the lock; nil: none does
	set     time.Duration        // when it does, after Settings.Epoch; 0: it does not
	private *lock.Hold           // fair: the claim whose private channel of Redisson's is subscribed; nil: none
	heard   bool                 // the entry is registered for Redisson's channel of the lock
	linger  lingers              // guarded by lingering.mu, but for hold
	waits   [len(Waits{})]uint32 // callers that had to wait in that minute, and are not in Engine.contended and waits yet
	minute  uint32               // after Settings.Epoch
}

// newEntry makes one for a handle.
func newEntry(n *named) *entry {
	e := &entry{engine: n.engine}
	if name := n.Name; name != n.Mapped {
		e.given = &name
	}
	e.lock.Init(n.family, n.wireKeys(), e)
	return e
}

// name is what errors, logs and spans say.
func (e *entry) name() string {
	if e.given != nil {
		return *e.given
	}
	return e.mapped()
}

// entryOf is the entry that a lock is of.
func entryOf(l *lock.Lock) *entry { return l.Shell.(*entry) }

// mapped is the lock's name as Redis sees it.
func (e *entry) mapped() string { return e.lock.Keys.Lock.(string) }

func (e *entry) channel() string { return e.lock.Keys.Channel() }

// Heard is called by the subscriber for each message on one of Redisson's channels.
func (e *entry) Heard(payload string) {
	if wire.SaysReleased(payload) {
		e.engine.Stats.Wakeups.Add(1)
		e.do(e.lock.Freed)
	}
}

// Subscribed is called each time Redis confirms a subscription.
func (e *entry) Subscribed() { e.do(e.lock.Subscribed) }

// Relied is called by the subscriber: no request depends on Redisson's channels.
func (e *entry) Relied() bool { return false }

// Denied is called by the subscriber: waiters poll beside Redisson's channels in any case.
func (e *entry) Denied() {}

// Unproven is called by the subscriber.
func (e *entry) Unproven() { e.do(func(m *lock.Moment) { e.lock.Unproven(m, true) }) }

// noticed is called with a message for a claim, or for a hold that may linger.
func (e *entry) noticed(h *lock.Hold, n wire.Notice) {
	if !n.Wanted {
		e.engine.Stats.Wakeups.Add(1)
	}
	e.do(func(m *lock.Moment) { e.lock.Noticed(m, h, n) })
}

// expire is called by the scheduler when a deadline has passed.
func (eng *Engine) expire(h *lock.Hold) {
	e := entryOf(h.Lock)
	e.do(func(m *lock.Moment) { e.lock.Expire(m, h) })
}

// notFound is called when a renewal did not find h in Redis.
func (e *entry) notFound(h *lock.Hold, reason lock.Reason) {
	e.do(func(m *lock.Moment) { e.lock.NotFound(m, h, reason) })
}

// prolonged records that a request sent at sent has set the TTL of h to at least ttl.
func (e *entry) prolonged(h *lock.Hold, sent time.Time, ttl time.Duration) {
	e.do(func(m *lock.Moment) { e.lock.Prolonged(m, h, sent, ttl) })
}

// twinWaits reports whether a caller of this process waits for the lock as a fair lock while e is of the mutex, or the other way round.
// Redis tells of other processes only (demand.lua).
func (e *entry) twinWaits() bool {
	twin := families[e.lock.Family].twin
	if twin == e.lock.Family {
		return false
	}
	other := e.engine.existing(twin, e.mapped())
	if other == nil {
		return false
	}
	other.mu.Lock()
	defer other.mu.Unlock()
	return other.lock.Wants()
}

// Lose ends all holds of a key, of whatever kind, as notFound does.
func (eng *Engine) Lose(key string) {
	for family := range lock.Families {
		if e := eng.existing(family, key); e != nil {
			e.do(e.lock.Deleted)
		}
	}
}

// sent is one copy of a lock's request, as the executor has it, and the handler of its end.
type sent struct {
	entry *entry // whose request it is
	of    lock.Request
	copy  lock.Copy
	call  command.Call
}

// copies are used again: they are most of what a Lock and an Unlock allocate.
var copies = sync.Pool{New: func() any { return new(sent) }}

// Recycle is called by the executor when it has no more to do with the copy.
func (s *sent) Recycle() {
	*s = sent{}
	copies.Put(s)
}

// sentFor makes the next copy of a request.
func (eng *Engine) sentFor(s *lock.Send) *sent {
	x := copies.Get().(*sent)
	x.entry, x.of, x.copy = entryOf(s.Lock), s.Request, s.Copy
	x.call.Handler, x.call.Patience, x.call.Dial = x, s.Patience, s.Dial
	x.call.Trace, _ = s.Trace.(context.Context)
	if q, ok := s.Request.(*lock.Question); ok && q.Echo != lock.NoEcho {
		eng.echo(q)
	}
	eng.Process.Ask(&x.call, s.Request)
	return x
}

// Replied is called by the executor with the end of the request.
func (s *sent) Replied(_ *command.Call, r command.Reply) {
	e, eng := s.entry, s.entry.engine
	p := events.Get().(*pooled)
	p.said = eng.Process.Read(s.of, s.call.Script, r)
	switch x := s.of.(type) {
	case *lock.Question:
		if x.Message != "" {
			eng.echoed(x, &p.said)
		}
		p.said.Wanted = p.said.Wanted || e.twinWaits()
	case *lock.Try:
		if said, believed := p.said.Total, x.Hold.Terms.Total; said > 0 && said != believed {
			eng.Journal.OtherNumber(e.name(), said, believed)
		}
	}
	e.replied(p, s.of, &s.copy)
}

// Overdue is called by the executor when the reply takes too long.
func (s *sent) Overdue(*command.Call) {
	s.entry.do(func(m *lock.Moment) { s.of.Overdue(m, &s.copy) })
}

// Stranded is called by the executor when the connection is dead.
func (s *sent) Stranded(*command.Call) {
	s.entry.do(func(m *lock.Moment) { s.of.Stranded(m, &s.copy) })
}

// replied is the event of a reply.
func (e *entry) replied(p *pooled, x lock.Request, c *lock.Copy) {
	r := &p.said
	next, notice := r.Next, r.Notice // a waiter of this process
	if next != nil && next.Lock == &e.lock {
		next = nil
	}
	if next != nil {
		r.Next = nil
	}
	p.Begin(&e.engine.world, &e.engine.Settings)
	e.mu.Lock()
	x.Replied(&p.Moment, c, r)
	e.engine.end(&p.event, e)
	p.drop()
	if next != nil { // of another entry: a mutex and a fair lock of one name have a queue in Redis
		entryOf(next.Lock).noticed(next, notice)
	}
}
