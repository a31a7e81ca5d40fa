package engine

import (
	"context"
	"sync"

	"github.com/holdfast-go/holdfast/internal/command"
	"github.com/holdfast-go/holdfast/internal/lock"
)

// sent is one copy of a lock's request, as the executor has it, and the handler of its end.
type sent struct {
	of   lock.Request
	copy lock.Copy
	call command.Call
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
	x.of, x.copy = s.Request, s.Copy
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
	e := entryOf(s.of.Of())
	eng := e.engine
	p := events.Get().(*pooled)
	p.said = eng.Process.Read(s.of, s.call.Script, r)
	switch x := s.of.(type) {
	case *lock.Question:
		if x.Message != "" {
			eng.echoed(x, &p.said)
		}
	case *lock.Try:
		if said, believed := p.said.Total, x.Hold.Terms.Total; said > 0 && said != believed {
			eng.Journal.OtherNumber(e.name(), said, believed)
		}
	}
	e.replied(p, s.of, &s.copy)
}

// Overdue is called by the executor when the reply takes too long.
func (s *sent) Overdue(*command.Call) {
	entryOf(s.of.Of()).do(func(m *lock.Moment) { s.of.Overdue(m, &s.copy) })
}

// Stranded is called by the executor when the connection is dead.
func (s *sent) Stranded(*command.Call) {
	entryOf(s.of.Of()).do(func(m *lock.Moment) { s.of.Stranded(m, &s.copy) })
}

// replied is the event of a reply.
func (e *entry) replied(p *pooled, x lock.Request, c *lock.Copy) {
	r := &p.said
	next, notice := r.Next, r.Notice // a waiter of this process
	if next != nil && next.Of() == &e.lock {
		next = nil
	}
	if next != nil {
		r.Next = nil
	}
	p.begin(e.engine)
	e.mu.Lock()
	x.Replied(&p.Moment, c, r)
	e.engine.end(&p.event, e)
	p.drop()
	if next != nil { // of another entry: a mutex and a fair lock of one name have a queue in Redis
		entryOf(next.Of()).noticed(next, notice)
	}
}
