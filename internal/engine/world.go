package engine

import (
	"time"

	"github.com/holdfast-go/holdfast/internal/command"
	"github.com/holdfast-go/holdfast/internal/lock"
	"github.com/holdfast-go/holdfast/internal/protocol"
	"github.com/holdfast-go/holdfast/internal/retry"
	"github.com/holdfast-go/holdfast/internal/wire"
)

// world is what the events of a lock may ask, and what requests say of the process.
type world struct{ eng *Engine }

func (w world) Now() time.Time { return time.Now() }

func (w world) Roughly() time.Duration { return w.eng.coarseNow() }

func (w world) Chance(n int64) int64 { return w.eng.Chance(n) }

func (w world) Pauses() lock.Pauses { return retry.New() }

func (w world) Number() uint64 { return w.eng.holds.Add(1) }

func (w world) Hears() bool { return w.eng.inbox.live() }

func (w world) Denied() bool { return w.eng.Subscriber.Denied(w.eng.inbox.channel) }

func (w world) Session() uint64 { return w.eng.inbox.sessions.Load() }

// OwnListeners counts what the server knows that a script runs on: a node of a cluster knows only subscriptions made there,
// which plain ones need not be.
func (w world) OwnListeners(keys *wire.Keys) int64 {
	s := w.eng.Subscriber
	if (w.eng.Process.Counted || s.Sharded()) && s.Live(keys.Channel()) {
		return 1
	}
	return 0
}

func (w world) Rely() bool { return w.eng.inbox.rely() }

func (w world) Unrely() { w.eng.inbox.unrely() }

func (w world) Expect(h *lock.Hold) *wire.Notice { return w.eng.inbox.expect(h) }

func (w world) Forget(h *lock.Hold) { w.eng.inbox.forget(h) }

func (w world) Linger(h *lock.Hold, since time.Duration) *lock.Hold {
	return w.eng.lingering.add(entryOf(h.Of()), h, since)
}

func (w world) Lingers(h *lock.Hold) time.Duration { return w.eng.lingering.since(entryOf(h.Of())) }

func (w world) Unlinger(h *lock.Hold) { w.eng.lingering.remove(entryOf(h.Of())) }

func (w world) Closing() bool { return w.eng.closing() }

func (w world) Silence() error { return w.eng.Executor.Silence() }

func (w world) Unanswered() error { return command.ErrSilent }

func (w world) PatienceFor(ttl time.Duration) time.Duration { return w.eng.patienceFor(ttl) }

func (w world) AcquirePatience(t *lock.Terms, once bool) time.Duration {
	d := w.eng.patienceFor(t.TTL)
	if once {
		d = max(d, min(w.eng.Executor.FirstWithin(), t.TTL/4))
	}
	if acks := protocol.TermsOf(t).Acks; acks != nil {
		d += acks.Timeout
	}
	return d
}

// dialFor is how long a request that a caller waits for may take where go-redis has to dial: as long as a plain command, while
// enough is left of the lease. Copies before this one have spent some of that. Requests for callers of Lock are repeated instead.
func dialFor(t *lock.Terms, spent time.Duration) time.Duration {
	return min(command.FirstAtMost, t.TTL/2) - spent
}

func (w world) AnswerPatience() time.Duration {
	return max(leastAnswer, min(answerTrips*w.eng.Executor.RoundTrip(), time.Second))
}

func (w world) AskPatience() time.Duration { return w.eng.askPatience() }

func (w world) TokenSeen(keys *wire.Keys) uint64 { return w.eng.tokens.seen(keys.Lock.(string)) }

func (w world) SawToken(keys *wire.Keys, token uint64) { w.eng.tokens.saw(keys.Lock.(string), token) }

func (w world) ClaimOf(n wire.Notice) *lock.Hold { return w.eng.inbox.claimOf(n) }

func (w world) Schedule(p lock.Plan) {
	s, item := w.eng.scheduler, &p.Hold.Item
	switch p.What {
	case lock.PlanDrop:
		s.Remove(item)
	case lock.PlanEnd:
		s.AddEnd(item, p.At)
	case lock.PlanFixed:
		s.Add(item, p.At, p.Set, p.TTL, false)
	case lock.PlanRenew:
		s.Add(item, p.At, p.Set, p.TTL, true)
		if !p.Hold.IsStanding() {
			w.eng.warm.Do(func() { w.eng.Executor.Warm(w.eng.life) })
		}
	case lock.PlanKept:
		s.Confirm(item, p.At, p.Set, p.TTL)
	case lock.PlanRetry:
		s.Retry(item)
	}
}

func (w world) Confirm(p lock.Plan) (time.Time, bool) {
	return w.eng.scheduler.Confirm(&p.Hold.Item, p.At, p.Set, p.TTL)
}

func (w world) Scheduled(h *lock.Hold) bool { return w.eng.scheduler.Has(&h.Item) }

func (w world) Room() *lock.Effects { return rooms.Get().(*lock.Effects) }

func (w world) NewBid(*lock.Waiter) *lock.Bid {
	b := bids.Get().(*bidSent)
	b.sent.of, b.First.Room = &b.First, b
	return &b.Bid
}

func (w world) NewTry() *lock.Try {
	t := new(trySent)
	t.sent.of, t.Room = &t.Try, t
	return &t.Try
}

func (w world) NewRelease() *lock.Release {
	r := releases.Get().(*releaseSent)
	r.sent.of, r.Room = &r.Release, r
	return &r.Release
}
