package engine

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/internal/lock"
	"github.com/holdfast-go/holdfast/internal/wire"
)

// inbox receives the messages of a manager: grants, and that another process wants what it keeps. A release by another process makes the next waiter in the lock's queue
// its owner, and publishes that on one channel per manager, for all its locks. The waiter needs no further round
// trip. A grant is good for the claim TTL only; the first renewal makes the lease of it.
//
// A message is a hint on top of what Redis knows. A poll makes up for a message that is lost (Lock.PollAfter). A
// request confirms a message that is late (Lock.noticed). A message for a claim that was given up is ignored,
// because giving up releases.
type inbox struct {
	engine   *Engine
	channel  string
	sessions atomic.Uint64 // how often it was subscribed
	relying  atomic.Int64  // requests under way that say that it has a listener

	mu       sync.Mutex    // guards the following; a leaf, but for subscriber.mu
	expected lock.Expected // the claims that stand in a queue, and the holds that may linger
}

func newInbox(eng *Engine) *inbox {
	return &inbox{engine: eng, channel: wire.Inbox(eng.Process.Owners)}
}

// Expect adds a claim that stands in a queue, or a hold that may linger. It returns the message that has come for
// it already; nil if there is none.
func (b *inbox) Expect(h *lock.Hold) *wire.Notice {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.expected.IsEmpty() {
		b.engine.Subscriber.Add(b.channel, b)
	}
	return b.expected.Add(h)
}

// Forget drops a claim, or a hold.
func (b *inbox) Forget(h *lock.Hold) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.expected.Drop(h) && b.expected.IsEmpty() {
		b.engine.Subscriber.Remove(b.channel, b)
	}
}

// Rely is Facts for a request that says whether the process hears messages. If it does, the process stays subscribed until the
// request has ended: a release takes a process for dead that has said that it listens and does not.
func (b *inbox) Rely() lock.Facts {
	b.relying.Add(1) // before the look, since the subscriber may look at the same time
	f := b.Facts()
	if f.Inbox != lock.Heard {
		b.relying.Add(-1)
	}
	return f
}

// session numbers the subscription. Messages may arrive before Subscribed has counted it.
func (b *inbox) session() uint64 { return b.sessions.Load() + 1 }

// Facts says whether the process hears its inbox, and what else an event may want to know.
func (b *inbox) Facts() lock.Facts {
	eng := b.engine
	f := lock.Facts{Inbox: lock.Unheard, Session: b.session(), RoundTrip: eng.Executor.RoundTrip(), First: eng.Executor.FirstWithin()}
	switch s := eng.Subscriber; {
	case s.Live(b.channel):
		f.Inbox = lock.Heard
	case s.Denied(b.channel):
		f.Inbox = lock.InboxDenied
	}
	return f
}

// Relied is called by the subscriber.
func (b *inbox) Relied() bool { return b.relying.Load() > 0 }

// Heard is called by the subscriber.
func (b *inbox) Heard(payload string) {
	n, ok := wire.ParseNotice(payload)
	if !ok {
		return
	}
	if h := b.ClaimOf(n); h != nil {
		entryOf(h.Lock).noticed(h, n)
	}
}

// ClaimOf returns the claim that n is for; if none is known to wait, n is kept for a while.
func (b *inbox) ClaimOf(n wire.Notice) *lock.Hold {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.expected.ClaimOf(n, time.Now())
}

// Subscribed is called when messages begin to arrive. The waiters send requests, which find earlier grants and say
// that there is an inbox now.
func (b *inbox) Subscribed() {
	b.sessions.Add(1)
	b.askAll()
}

// Denied is called when Redis does not let the process hear messages. Redis is to know that as well: a release
// would take a waiter whose inbox has no listener for dead. And a waiter that relied on messages polls from now
// on.
func (b *inbox) Denied() { b.askAll() }

// Unproven is called by the subscriber.
func (b *inbox) Unproven() {
	b.mu.Lock()
	locks := b.expected.Locks()
	b.mu.Unlock()
	if len(locks) > 0 {
		e := entryOf(locks[0])
		e.do(func(m *lock.Moment) { e.lock.Unproven(m, false) })
	}
}

// echo completes a question by which the process sends itself a message, if one is of use.
func (eng *Engine) echo(q *lock.Question) {
	q.Channel = eng.inbox.channel
	if q.Echo == lock.EchoOwn && eng.Subscriber.Sharded() {
		q.Channel = q.Hold.Lock.Keys.Channel()
	}
	if q.Message = eng.Subscriber.Echo(q.Channel); q.Message == "" {
		q.Channel = ""
	}
}

// echoed is called with the answer to it.
func (eng *Engine) echoed(q *lock.Question, r *lock.Reply) {
	heard := r.Heard
	if !eng.Process.Counted && heard == 0 {
		heard = 1 // perhaps by way of another node
	}
	eng.Subscriber.Published(q.Channel, q.Message, heard, eng.Executor.RoundTrip())
}

// askAll makes all waiters send a request, and all holders that may keep a lock too long.
func (b *inbox) askAll() {
	b.mu.Lock()
	locks := b.expected.Locks()
	b.mu.Unlock()
	for _, l := range locks {
		entryOf(l).do(l.Unsure)
	}
}
