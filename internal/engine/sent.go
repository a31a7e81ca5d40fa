package engine

import (
	"context"

	"github.com/holdfast-go/holdfast/internal/command"
	"github.com/holdfast-go/holdfast/internal/lock"
	"github.com/holdfast-go/holdfast/internal/protocol"
)

// sent is one copy of a lock's request, as the executor has it, and the handler of its end.
type sent struct {
	of   lock.Request
	copy lock.Copy
	call command.Call
}

// What locks ask for most often is one allocation together with what is sent of it first.
type (
	bidSent struct {
		lock.Bid
		sent
	}
	trySent struct {
		lock.Try
		sent
	}
	releaseSent struct {
		lock.Release
		sent
	}
)

// sentFor makes the next copy of a request.
func (eng *Engine) sentFor(s *lock.Send) *sent {
	x := eng.copyOf(s.Request)
	x.call.Handler, x.call.Patience, x.call.Lapses = x, s.Patience, s.Lapses
	x.call.Trace, _ = s.Trace.(context.Context)
	return x
}

func (eng *Engine) copyOf(r lock.Request) (x *sent) {
	p := &eng.Process
	switch r := r.(type) {
	case *lock.Try:
		x = r.Room.(*sent)
		x.call.Acks, x.call.Room = protocol.TermsOf(r.Hold.Terms).Acks, command.NewRoom()
		x.call.Script, x.call.Args = p.Acquire(x.call.Room, r)
	case *lock.Release:
		x = r.Room.(*sent)
		if x.call.Script != nil { // it has been sent
			x = &sent{of: r, copy: lock.Copy{Generation: r.Generation()}}
		}
		x.call.Room = command.NewRoom()
		x.call.Script, x.call.Args = p.Release(x.call.Room, r)
	case *lock.Downgrade:
		x = &sent{of: r}
		x.call.Room = command.NewRoom()
		x.call.Script, x.call.Args = p.Downgrade(x.call.Room, r)
	case *lock.Join:
		x = &sent{of: r}
		x.call.Script, x.call.Args = p.Join(r)
	case *lock.Keep:
		x = &sent{of: r}
		x.call.Script, x.call.Args = p.Keep(r)
	case *lock.Question:
		x = &sent{of: r}
		x.call.Script, x.call.Args = p.Question(r)
	case *lock.Busy:
		x = &sent{of: r}
		x.call.Script, x.call.Args = p.Busy(r)
	}
	return x
}

// Replied is called by the executor with the end of the request.
func (s *sent) Replied(_ *command.Call, r command.Reply) {
	replied(s.of, &s.copy, entryOf(s.of.Of()).engine.Process.Read(s.of, s.call.Script, r))
}

// Overdue is called by the executor when the reply takes too long.
func (s *sent) Overdue(*command.Call) { overdue(s.of, &s.copy) }

// Stranded is called by the executor when the connection is dead.
func (s *sent) Stranded(*command.Call) { stranded(s.of, &s.copy) }

func replied(x lock.Request, c *lock.Copy, r lock.Reply) {
	e := entryOf(x.Of())
	other := r.Next // a waiter of this process
	if other != nil && other.Of() == x.Of() {
		other = nil
	}
	if other != nil {
		r.Next = nil
	}
	e.end(x, c, &r)
	if other != nil { // of another entry: a mutex and a fair lock of one name have a queue in Redis
		entryOf(other.Of()).noticed(other, r.Notice)
	}
}

func (e *entry) end(x lock.Request, c *lock.Copy, r *lock.Reply) {
	m := e.moment()
	e.mu.Lock()
	defer e.unlock(&m)
	e.lock.Replied(&m, x, c, r)
}

func overdue(x lock.Request, c *lock.Copy) {
	e := entryOf(x.Of())
	m := e.moment()
	e.mu.Lock()
	defer e.unlock(&m)
	e.lock.Overdue(&m, x, c)
}

func stranded(x lock.Request, c *lock.Copy) {
	e := entryOf(x.Of())
	m := e.moment()
	e.mu.Lock()
	defer e.unlock(&m)
	e.lock.Stranded(&m, x, c)
}
