package engine

import (
	"time"

	"github.com/holdfast-go/holdfast/internal/wire"
)

// moment is what an event of an entry knows of the world outside: the time, chance, and whether messages arrive. The
// function that takes entry.mu for an event makes its moment and passes it to all that it calls. So an event has one
// time. It is read when a step first asks for it, which the steps of a local hand-off do not. That is after entry.mu
// was taken: no wait for the mutex makes it too early. Only the moment of an Unlock is that of the call, because the
// lease is given up if it was valid then. A hold whose deadline is as near as such a wait is not passed on (hold.sound).
// The files of the state machine learn these things in no other way: TestMachine_KnowsTheWorldByItsMoment.
type moment struct {
	engine *Engine
	at     time.Time // zero: not read yet
	effects
}

// moment begins an event.
func (e *entry) moment() moment { return moment{engine: e.engine} }

// now is the time of the event.
func (m *moment) now() time.Time {
	if m.at.IsZero() {
		m.at = time.Now()
	}
	return m.at
}

// age is now, after Engine.Epoch.
func (m *moment) age() time.Duration { return m.now().Sub(m.engine.Epoch) }

// roughly is age for people: up to a millisecond old.
func (m *moment) roughly() time.Duration {
	if m.at.IsZero() {
		return m.engine.coarseNow()
	}
	return m.age()
}

// chance draws a number from 0 to below n.
func (m *moment) chance(n int64) int64 { return m.engine.Chance(n) }

// hears reports whether the process gets messages: its inbox is subscribed.
func (m *moment) hears() bool { return m.engine.inbox.live() }

// denied reports whether Redis denies the process its inbox.
func (m *moment) denied() bool { return m.engine.Subscriber.Denied(m.engine.inbox.channel) }

// session numbers the subscriptions of the inbox: messages between two of them have been missed.
func (m *moment) session() uint64 { return m.engine.inbox.sessions.Load() }

// rely is hears for a request that tells Redis so, and true until that request ends with unrely. To look in the step
// and to rely after it would not do: the process can leave its inbox in between.
func (m *moment) rely() bool { return m.engine.inbox.rely() }

// unrely ends what rely has begun.
func (m *moment) unrely() { m.engine.inbox.unrely() }

// expect has the inbox wait for a message to a claim that stands in a queue, and returns the one that has come already; nil
// if there is none. To look in the step and to wait after it would lose the one that comes in between.
func (m *moment) expect(h *hold) *wire.Notice { return m.engine.inbox.expect(h) }

// forget ends what expect has begun.
func (m *moment) forget(h *hold) { m.engine.inbox.forget(h) }

// claimOf returns the claim of this process that a message is for; nil: none.
func (m *moment) claimOf(n wire.Notice) *hold { return m.engine.inbox.claimOf(n) }

// ownListeners is how many of the clients that hear the lock's channel are this process, as far as the server
// that a script runs on knows: a node of a cluster knows only subscriptions made there, which plain ones
// need not be.
func (m *moment) ownListeners(e *entry) int64 {
	s := m.engine.Subscriber
	if (m.engine.counted || s.Sharded()) && s.Live(e.channel()) {
		return 1
	}
	return 0
}

// clientClosed reports whether the client is known to be closed: requests bring nothing any more.
func (m *moment) clientClosed() bool { return m.engine.Executor.Closed() }

// silence is why requests bring no answer.
func (m *moment) silence() error { return m.engine.Executor.Silence() }

// patienceFor is how long Redis has to answer a request for a lock of this TTL.
func (m *moment) patienceFor(ttl time.Duration) time.Duration { return m.engine.patienceFor(ttl) }

// acquirePatience is how long an acquire request may stay unanswered. Callers that ask once wait for the first answer of
// all for longer; others ask again.
func (m *moment) acquirePatience(c *Terms, once bool) time.Duration {
	d := m.patienceFor(c.TTL)
	if once {
		d = max(d, min(m.engine.Executor.FirstWithin(), c.TTL/4))
	}
	if c.Acks != nil {
		d += c.Acks.Timeout
	}
	return d
}

// askPatience is how long Redis has to answer what no caller waits for.
func (m *moment) askPatience() time.Duration { return m.engine.askPatience() }

// tokenSeen is the highest fencing token of the lock that this process has seen; 0: none.
func (m *moment) tokenSeen(e *entry) uint64 { return m.engine.tokens.seen(e.mapped()) }

// sawToken has this process remember a fencing token.
func (m *moment) sawToken(e *entry, token uint64) { m.engine.tokens.saw(e.mapped(), token) }

// closing reports whether Close has been called.
func (m *moment) closing() bool { return m.engine.closing() }
