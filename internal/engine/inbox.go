package engine

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/internal/validity"
	"github.com/holdfast-go/holdfast/internal/wire"
)

// inbox receives the grants of a manager. A release by another process makes the next waiter in the lock's queue
// its owner, and publishes that on one channel per manager, for all its locks. The waiter needs no further round
// trip. A grant is good for the claim TTL only; the first renewal makes the lease of it.
//
// A message is a hint on top of what Redis knows. A poll makes up for a message that is lost (entry.pollAfter). A
// request confirms a message that is late (noticedLocked). A message for a claim that was given up is ignored,
// because giving up releases.
type inbox struct {
	engine   *Engine
	channel  string
	sessions atomic.Uint64 // how often it was subscribed
	relying  atomic.Int64  // requests under way that say that it has a listener

	mu       sync.Mutex       // guards the following; a leaf, but for subscriber.mu
	expected map[uint64]*hold // claims that stand in a queue, by their number
	early    earlyNotices
}

// claimTTL bounds for how long a grant to a process that is dead, or stopped, or does
// not hear of it keeps others out. A lock that is held for longer than 25 ms is renewed
// then, which gives it its own TTL; shorter ones are spared that command.
const claimTTL = 2 * time.Second

// turnsInARow is how many grants to Holdfast's waiters follow each other before a release lets a plain waiter of
// Redisson in, if one listens (prelude/turn.lua).
const turnsInARow = 16

func newInbox(eng *Engine) *inbox {
	return &inbox{engine: eng, channel: wire.Inbox(eng.owners), expected: make(map[uint64]*hold)}
}

// expect adds a claim that stands in a queue. It returns the message that has come for
// it already; nil if there is none.
func (b *inbox) expect(h *hold) *wire.Notice {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.expected) == 0 {
		b.engine.Subscriber.Add(b.channel, b)
	}
	b.expected[h.number] = h
	return b.early.take(h.number)
}

// forget drops a claim.
func (b *inbox) forget(h *hold) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if _, ok := b.expected[h.number]; !ok {
		return // it stood in the queue, but its waiter left before the answer came
	}
	delete(b.expected, h.number)
	if len(b.expected) == 0 {
		b.engine.Subscriber.Remove(b.channel, b)
	}
}

// live reports whether messages arrive.
func (b *inbox) live() bool { return b.engine.Subscriber.Live(b.channel) }

// rely is called for a request that says whether the process hears messages, and reports whether it does. If so,
// the process stays subscribed until unrely is called: a release takes a process for dead that has said that it
// listens and does not.
func (b *inbox) rely() bool {
	b.relying.Add(1) // before the look, since the subscriber may look at the same time
	if b.live() {
		return true
	}
	b.unrely()
	return false
}

func (b *inbox) unrely() { b.relying.Add(-1) }

// Relied is called by the subscriber.
func (b *inbox) Relied() bool { return b.relying.Load() > 0 }

// Heard is called by the subscriber.
func (b *inbox) Heard(payload string) {
	n, ok := wire.ParseNotice(payload)
	if !ok {
		return
	}
	if h := b.claimOf(n); h != nil {
		h.entry.noticed(h, n)
	}
}

// claimOf returns the claim that n is for; if none is known to wait, n is kept for a while.
func (b *inbox) claimOf(n wire.Notice) *hold {
	b.mu.Lock()
	defer b.mu.Unlock()
	h := b.expected[n.Number]
	if h == nil {
		b.early.keep(n, time.Now())
	}
	return h
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

// askAll makes all waiters send a request.
func (b *inbox) askAll() {
	b.mu.Lock()
	entries := make(map[*entry]struct{})
	for _, h := range b.expected {
		entries[h.entry] = struct{}{}
	}
	b.mu.Unlock()
	for e := range entries {
		e.unsure()
	}
}

// noticed is called with a message for a claim.
func (e *entry) noticed(h *hold, n wire.Notice) {
	e.mu.Lock()
	e.engine.Stats.Wakeups.Add(1)
	lost := e.noticedLocked(h, n)
	e.stepLocked()
	e.mu.Unlock()
	e.announceLoss(lost, lostStolen)
}

// noticedLocked takes a grant, or asks Redis about it where the message alone cannot be
// trusted.
//
// When the TTL of the claim began is computed from the server's clock in the message and an earlier reading of
// that clock (validity.Grant). One more round trip confirms the grant in three cases. The computation shows that
// the message may be late or a clock was set. This process has the lock already, because the lock was deleted in
// between. The claim needs what only an acquire gives: its own TTL (the releaser's leases are shorter), tokens or
// replicas' acknowledgement.
func (e *entry) noticedLocked(h *hold, n wire.Notice) []Ended {
	if !h.phase.claim() {
		return nil // a request has found it; or it was given up, and its release is on its way
	}
	b := h.bid
	if b.waiter == nil || n.Granted && b.current != nil {
		// A release before the request under way is answered would have to leave a tombstone for it. The answer,
		// mostly a moment away, is the grant as well, or lets n stand, even for a waiter that has taken the
		// request over by then.
		kept := n // n itself would be on the heap each time
		b.notice = &kept
		return nil
	}
	switch {
	case n.Granted:
	case e.alarm.yields(): // it asks soon
		return nil
	case n.Left > 0 && e.alarm == alarmPoll:
		e.pollWithinLocked(n.Left + pastTTL)
		return nil
	default: // Redisson's turn; or the answer to the request under way may be from before the TTL was shortened
		e.armLocked(alarmGiveWay, redissonsTurn)
		return nil
	}
	h.turn = uint8(min(n.Turn, turnsInARow))
	if n.Others {
		h.demand = demandKnown
	}
	since, trusted := validity.Grant(time.Now(), b.before, b.clock, n.Clock, n.Claim)
	if !trusted || len(e.conflictsLocked(h)) > 0 || e.engine.confirm || h.cfg.Fixed || h.cfg.Acks != nil || n.Claim < h.cfg.claim ||
		h.cfg.Fencing && n.Token < e.engine.tokens.seen(e.mapped())+wire.TokensPerGrant { // none, or the counter was lost
		e.tryLocked(b.waiter)
		return nil
	}
	e.engine.Stats.Granted.Add(1)
	if h.cfg.Fencing {
		h.tokens = wire.TokensPerGrant
	}
	return e.grantedLocked(h, since, n.Claim, n.Token, grantedByServer)
}
