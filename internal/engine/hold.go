package engine

import (
	"time"

	"github.com/holdfast-go/holdfast/internal/command"
	"github.com/holdfast-go/holdfast/internal/protocol"
	"github.com/holdfast-go/holdfast/internal/renewal"
	"github.com/holdfast-go/holdfast/internal/validity"
	"github.com/holdfast-go/holdfast/internal/wire"
)

// phase is where a hold is in its life.
//
//	claimed ──refused──► standing ──granted──► held ──ended early──► owed ──released──► over
//	   │ └─────────────granted──────────────────►┘└──── released, lost ──────────────────►│
//	   └──────────────────┴──── given up, undone ────────────────────────────────────────►┘
type phase uint8

const (
	claimed  phase = iota // asked for; Redis may or may not have granted it
	standing              // likewise, and it stood in the lock's queue in Redis when Redis last answered
	held                  // granted and trusted until its deadline
	owed                  // ended early, and may still be in Redis: Unlock releases it
	over                  // released, lost or given up; never held again
)

// claim reports whether the hold is a claim, which Redis may grant.
func (p phase) claim() bool { return p <= standing }

// hold is what this process has in Redis for one lock: one owner id, one TTL, one
// deadline. Leases are what callers have on top of it. A hold begins as a claim,
// before Redis has answered, because its owner id is what an unclear answer is
// resolved by.
type hold struct {
	entry  *entry
	cfg    *Terms
	keys   *wire.Keys // of the handle that the request was made with
	number uint64     // what tells its owner id from others of the manager

	item renewal.Item[*hold] // guarded by the scheduler

	// The following is guarded by entry.mu. There can be many thousand holds: the order
	// leaves no gap.

	phase      phase
	kind       Kind   // not changed, and here because it fills a gap
	copies            // of its acquire request, or of the downgrade: the release leaves a tombstone for stray ones
	extended   bool   // Extend has asked for more than its TTL, and may not have been answered
	downgraded bool   // a write hold became it
	demand     demand // by other processes
	turn       uint8  // grants by the server in a row that led to this hold
	tokens     uint8  // fencing tokens: while claimed, how many were requested; once held, how many are left
	short      bool   // until the first renewal its TTL is that of a grant by message
	stays      bool   // its caller has given it up, and it stays taken until WithHoldAtLeast is over
	roundTrip  uint32 // of the latest renewal, in microseconds
	token      uint64 // the last fencing token given out

	bid      *bid          // the bid whose claim it is; nil once it is granted or given up
	deadline time.Time     // until then the hold is trusted
	tenure   time.Duration // since when, after Engine.Epoch, this slice of it runs
	renewed  time.Duration // when the latest renewal was sent, after Engine.Epoch; 0: there was none
	leases   *Lease        // the callers' live leases, linked: of one owner, or of readers
	limit    *limit        // of the caller, by WithMaxHold; nil: none
}

// writes reports whether a lease on h is for the write side.
func (h *hold) writes() bool {
	for l := h.leases; l != nil; l = l.next {
		if l.kind == WriteKind {
			return true
		}
	}
	return false
}

// limit is when a caller's time ends by WithMaxHold.
type limit struct {
	at    time.Time
	timer *time.Timer // nil: not yet. Guarded by entry.mu
	hold  *hold       // of the caller; a downgrade makes it another. Guarded by entry.mu
}

// newHold begins a claim.
func newHold(e *entry, cfg *Terms, keys *wire.Keys, k Kind) *hold {
	h := &hold{entry: e, cfg: cfg, keys: keys, kind: k, number: e.engine.holds.Add(1)}
	h.item.Value = h
	return h
}

// id is the owner id, which Redis knows h by. It is not kept: of the memory of a held lock it would be a tenth.
func (h *hold) id() string { return wire.OwnerID(h.entry.engine.owners, h.number, h.kind == WriteKind) }

// rest is the TTL that h still needs at now: the time to its deadline, and the margin. A request that prolongs h sets at
// least this much, so that it cuts nothing short. It adds no more than the time of its way to Redis.
func (h *hold) rest(now time.Time) time.Duration {
	return validity.TTL(max(h.deadline.Sub(now), time.Millisecond))
}

// tail is what the owner id ends with, behind the engine's prefix.
func (h *hold) tail() string { return wire.OwnerID("", h.number, h.kind == WriteKind) }

// serves reports whether the caller of a request can be given h as it is.
func (h *hold) serves(r *Lock) bool {
	return h.kind == r.Kind && (h.cfg == r.Terms || *h.cfg == *r.Terms)
}

// passes reports whether h may go to the caller of a request without a word to Redis. A fixed lease is never
// passed on: its time belongs to its caller. So does the time that Extend adds to another lease, because renewal
// shortens nothing.
func (h *hold) passes(r *Lock, now time.Time) bool {
	eng := h.entry.engine
	return eng.slice > 0 && h.kind != FairKind && !h.cfg.Fixed && h.cfg.AtLeast == 0 && !h.extended && h.serves(r) &&
		(!h.cfg.Fencing || h.tokens > 0) && !(h.demand == demandKnown && h.sliceOver(now)) && h.sound(now)
}

// shares reports whether a reader can use the read hold h of another. One with a limit
// or an end of its own cannot; nor one that needs a token, if h has a writer's, which excluded it.
func (h *hold) shares(r *Lock) bool {
	return h.serves(r) && !h.cfg.Fixed && h.cfg.MaxHold == 0 && h.cfg.AtLeast == 0 && !(h.cfg.Fencing && h.downgraded)
}

// joins reports whether a new reader may come in on h: not if Extend has made it last for longer,
// see passes.
func (h *hold) joins(r *Lock, now time.Time) bool {
	return h.shares(r) && !h.extended && h.demand != demandKnown && h.sound(now)
}

// sound reports whether h is far enough from its deadline to be passed on: its renewal
// is not in trouble.
func (h *hold) sound(now time.Time) bool {
	return validity.Valid(now.Add(h.cfg.claim/4), h.deadline)
}

// scheduleFrom puts h into the schedule, whose TTL a request sent at sent has set. It returns the deadline.
func (h *hold) scheduleFrom(m *moment, sent time.Time, ttl time.Duration) time.Time {
	p := plan{h, planRenew, sent, ttl, h.cfg.TTL}
	if h.cfg.Fixed {
		p.what = planFixed
	}
	m.schedule(p)
	return validity.Deadline(sent, ttl)
}

// endLimit ends the limit of a caller that has the hold no longer.
func (h *hold) endLimit(m *moment) {
	if h.limit != nil {
		m.sync(h.limit)
		h.limit = nil
	}
}

// add puts a lease on h.
func (h *hold) add(l *Lease) {
	l.next = h.leases
	if l.next != nil {
		l.next.prev = l
	}
	h.leases = l
}

// drop takes a lease that has ended off h and reports whether it was the last. It does
// so once.
func (h *hold) drop(l *Lease) (last bool) {
	switch {
	case h.leases == l:
		h.leases = l.next
	case l.prev != nil:
		l.prev.next = l.next
	default:
		return false
	}
	if l.next != nil {
		l.next.prev = l.prev
	}
	l.next, l.prev = nil, nil
	return h.leases == nil
}

// offer is the argument of the release scripts that says how to grant the lock to the next waiter.
func (h *hold) offer() any {
	if h.turn == 0 {
		return h.cfg.offer
	}
	return protocol.Offer(validity.Milliseconds(h.cfg.claim), int(h.turn)+1, h.entry.engine.counted)
}

// fairChannel is where Redisson tells a fair waiter that it is next.
func (h *hold) fairChannel() string {
	return wire.FairChannel(h.keys.Channel.(string), h.id())
}

// withKeys begins the arguments of a script for h with its keys, in the room of a slice. The order is that of all
// scripts that take one hold; what only some calls need stands last: the tombstones, and the fencing counter.
func (h *hold) withKeys(room []any, script *command.Script, tombstones bool) []any {
	keys := h.keys
	args := append(script.Begin(room), keys.Lock, keys.Queue, keys.Deadlines)
	if h.kind == ReadKind {
		args = append(args, h.right())
	}
	if tombstones || h.cfg.Fencing {
		args = append(args, keys.Tombstones)
	}
	if h.cfg.Fencing {
		args = append(args, keys.Token)
	}
	return command.CountKeys(args)
}

// right names the key that the read hold h ends with.
func (h *hold) right() string {
	return wire.ReadRight(h.entry.mapped(), h.id())
}

// readHolds are the read holds of an entry: mostly one, shared by all readers of the
// process. A nil one is empty. They are guarded by entry.mu.
type readHolds struct {
	holds      []*hold
	converting *downgrade // the latest; nil: there was none
}

func (e *entry) addReaderLocked(h *hold) {
	if e.reads == nil {
		e.reads = new(readHolds)
	}
	e.reads.holds = append(e.reads.holds, h)
}

func (r *readHolds) none() bool { return r == nil || len(r.holds) == 0 }

// converts reports whether a downgrade is to make h, and Redis has not answered it.
func (r *readHolds) converts(h *hold) bool {
	return r != nil && r.converting != nil && r.converting.reader == h && !r.converting.settled
}

func (r *readHolds) all() []*hold {
	if r == nil {
		return nil
	}
	return r.holds
}
