package engine

import (
	"context"
	"sync"

	"github.com/holdfast-go/holdfast/internal/command"
	"github.com/holdfast-go/holdfast/internal/lock"
	"github.com/holdfast-go/holdfast/internal/protocol"
)

// sent is one copy of a lock's request, as the executor has it, and the handler of its end.
type sent struct {
	of    lock.Request
	copy  lock.Copy
	call  command.Call
	again bool // of a release: it was sent again; guarded by entry.mu
	spent bool // as the lock says; confined to what has brought the answer
}

// first is what was sent first of a request that has room for that.
func (s *sent) first() *sent { return s }

// firstOf returns it.
func firstOf(room any) *sent { return room.(interface{ first() *sent }).first() }

// What locks ask for most often is one allocation together with what is sent of it first. Most of them end with the first answer
// to that, and are used again: they are about half of what a Lock and an Unlock allocate.
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

var (
	bids     = sync.Pool{New: func() any { return new(bidSent) }}
	releases = sync.Pool{New: func() any { return new(releaseSent) }}
)

// Recycle is called by the executor when it has no more to do with the request.
func (s *sent) Recycle() {
	if !s.spent {
		return
	}
	switch r := s.of.(type) {
	case *lock.Try:
		if b, ok := r.Room.(*bidSent); ok {
			*b = bidSent{}
			bids.Put(b)
		}
	case *lock.Release:
		if x := r.Room.(*releaseSent); s == &x.sent && !s.again { // else a lane may have not let go of another copy
			*x = releaseSent{}
			releases.Put(x)
		}
	}
}

// sentFor makes the next copy of a request.
func (eng *Engine) sentFor(s *lock.Send) *sent {
	x := eng.copyOf(s.Request)
	x.call.Handler, x.call.Patience, x.call.Lapses = x, s.Patience, s.Lapses
	switch r := s.Request.(type) {
	case *lock.Try:
		if !r.Stands {
			x.call.Dial = dialFor(r.Hold.Terms, world{eng}.AcquirePatience(r.Hold.Terms, true)-s.Patience)
		}
	case *lock.Release:
		x.call.Dial = dialFor(r.Hold.Terms, eng.patienceFor(r.Hold.Terms.TTL)-s.Patience)
	case *lock.Downgrade:
		x.call.Dial = dialFor(r.Hold.Terms, eng.patienceFor(r.Hold.Terms.TTL)-s.Patience)
	}
	x.call.Trace, _ = s.Trace.(context.Context)
	return x
}

func (eng *Engine) copyOf(r lock.Request) (x *sent) {
	p := &eng.Process
	switch r := r.(type) {
	case *lock.Try:
		x = firstOf(r.Room)
		x.call.Acks, x.call.Room = protocol.TermsOf(r.Hold.Terms).Acks, command.NewRoom()
		x.call.Script, x.call.Args = p.Acquire(x.call.Room, r)
	case *lock.Release:
		x = firstOf(r.Room)
		if x.call.Script != nil { // it has been sent
			x.again = true
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
		if r.Echo {
			eng.echo(r)
		}
		x.call.Script, x.call.Args = p.Question(r)
	case *lock.Busy:
		x = &sent{of: r}
		x.call.Script, x.call.Args = p.Busy(r)
	}
	return x
}

// Replied is called by the executor with the end of the request.
func (s *sent) Replied(_ *command.Call, r command.Reply) {
	eng := entryOf(s.of.Of()).engine
	a := answers.Get().(*answer)
	a.said = eng.Process.Read(s.of, s.call.Script, r)
	if q, ok := s.of.(*lock.Question); ok && q.Message != "" {
		eng.echoed(q, &a.said)
	}
	s.spent = a.replied(s.of, &s.copy)
	*a = answer{}
	answers.Put(a)
}

// Overdue is called by the executor when the reply takes too long.
func (s *sent) Overdue(*command.Call) { overdue(s.of, &s.copy) }

// Stranded is called by the executor when the connection is dead.
func (s *sent) Stranded(*command.Call) { stranded(s.of, &s.copy) }

// answer is the event of a reply. It is used again: the compiler does not see that a request, which is an interface, keeps nothing of it.
type answer struct {
	said lock.Reply
	m    lock.Moment
}

var answers = sync.Pool{New: func() any { return new(answer) }}

func (a *answer) replied(x lock.Request, c *lock.Copy) (spent bool) {
	r := &a.said
	other := r.Next // a waiter of this process
	if other != nil && other.Of() == x.Of() {
		other = nil
	}
	if other != nil {
		r.Next = nil
	}
	spent = a.end(entryOf(x.Of()), x, c)
	if other != nil { // of another entry: a mutex and a fair lock of one name have a queue in Redis
		entryOf(other.Of()).noticed(other, r.Notice)
	}
	return spent
}

func (a *answer) end(e *entry, x lock.Request, c *lock.Copy) (spent bool) {
	a.m = e.moment()
	e.mu.Lock()
	defer e.unlock(&a.m)
	return x.Replied(&a.m, c, &a.said)
}

func overdue(x lock.Request, c *lock.Copy) {
	e := entryOf(x.Of())
	m := e.moment()
	e.mu.Lock()
	defer e.unlock(&m)
	x.Overdue(&m, c)
}

func stranded(x lock.Request, c *lock.Copy) {
	e := entryOf(x.Of())
	m := e.moment()
	e.mu.Lock()
	defer e.unlock(&m)
	x.Stranded(&m, c)
}
