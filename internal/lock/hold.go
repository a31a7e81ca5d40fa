package lock

import (
	"math"
	"time"

	"github.com/holdfast-go/holdfast/internal/renewal"
	"github.com/holdfast-go/holdfast/internal/validity"
)

// phase is where a hold is in its life, from its first request on.
//
//	             granted in time, by the                Unlock of the last lease, no waiter here
//	             reply or by a message
//	claimed ───────────────────────► held ──────────────────────────────────────────────────► over ──► release
//	   │ │ refused: in the queue     ▲│ ▲ local hand-off
//	   │ └──► standing ── granted ───┘│ │
//	   │         │                    ├─┘
//	   │         │ no waiter          ├── not the owner, Close ─────────────────────────────► over
//	   │         └────────────────────│─────────────────────────────────────────────────────► over ──► release
//	   │ no waiter any more           │
//	   │   refused for certain ───────│─────────────────────────────────────────────────────► over
//	   │   unclear, or unanswered and overdue ──────────────────────────────────────────────► over ──► release with tombstone
//	   │ granted, too late or to no caller ─────────────────────────────────────────────────► over ──► release
//	                                  │ deadline, WithMaxHold ──► owed ── Unlock, or its TTL ► over ──► release
//
// One that may linger is kept by the process after Unlock, if no waiter is here or, as far as is known, elsewhere:
//
//	      Unlock of the last lease                another process wants it, a caller here cannot use it, its time is over
//	held ─────────────────────────► lingering ────────────────────────────────────────────────────────────────────────► over ──► release
//	    ◄─────────────────────────     │ not the owner, Close, deadline: as held
//	      the next caller here
type phase uint8

const (
	claimed   phase = iota // asked for; Redis may or may not have granted it
	standing               // likewise, and it stood in the lock's queue in Redis when Redis last answered
	held                   // granted and trusted until its deadline
	lingering              // likewise, and no caller has a lease on it: see linger.go
	owed                   // ended early, and may still be in Redis: Unlock releases it
	over                   // released, lost or given up; never held again
)

// origin is how a hold came about.
type origin uint8

const (
	byRequest   origin = iota
	byMessage          // until the first renewal its TTL is that of a grant
	byDowngrade        // a write hold became it
)

// owns reports whether the process has the lock, as far as it knows.
func (p phase) owns() bool { return p == held || p == lingering }

// Hold is what this process has in Redis for one lock: one owner id, one TTL, one
// deadline. Leases are what callers have on top of it. A hold begins as a claim,
// before Redis has answered, because its owner id is what an unclear answer is
// resolved by.
type Hold struct {
	Lock   *Lock // not changed
	Terms  *Terms
	Number uint64 // what tells its owner id from others of the process

	Item renewal.Item[*Hold] // where it stands in the schedule; guarded by that

	// There can be many thousand holds: the order leaves no gap.

	phase     phase
	Kind      Kind   // not changed, and here because it fills a gap
	copies           // of its acquire request, or of the downgrade: the release leaves a tombstone for stray ones
	extended  bool   // Extend has asked for more than its TTL, and may not have been answered
	demand    demand // by other processes
	Turn      uint8  // grants by the server in a row that led to this hold
	Tokens    uint8  // fencing tokens: while claimed, how many were requested; once held, how many are left
	origin    origin // how it came about
	watch     watch  // whether a caller waits to know that another owner wants the lock
	unlocked  bool   // an Unlock has ended its last lease: it may linger, or stays taken until WithHoldAtLeast is over
	roundTrip uint32 // of the latest renewal, in microseconds
	token     uint64 // the last fencing token given out

	bid      *Bid          // the bid whose claim it is; nil once it is granted or given up
	Deadline time.Time     // until then the hold is trusted
	tenure   time.Duration // since when, after Settings.Epoch, this slice of it runs
	renewed  time.Duration // when the latest renewal was sent, after Settings.Epoch; 0: there was none
	leases   *Lease        // the callers' live leases, linked: of one owner, or of readers
	Limit    *Limit        // of the caller, by WithMaxHold; nil: none
	Lingers  time.Duration // since when it lingers, after Settings.Epoch; 0: it does not
}

// Leases is the youngest of the live leases; nil: there is none. Lease.Next has the others.
func (h *Hold) Leases() *Lease { return h.leases }

// Renewed is when the latest renewal was sent, after Settings.Epoch, and its round trip; 0: there was none.
func (h *Hold) Renewed() (at, roundTrip time.Duration) {
	return h.renewed, time.Duration(h.roundTrip) * time.Microsecond
}

// Limit is when a caller's time ends by WithMaxHold.
type Limit struct {
	At    time.Time
	Timer any   // the shell's; nil: not yet
	hold  *Hold // of the caller; a downgrade makes it another
}

// Of is the lock.
func (l *Limit) Of() *Lock { return l.hold.Lock }

// Runs reports whether its caller still has the hold.
func (l *Limit) Runs() bool { return l.hold.Limit == l }

// newHold begins a claim.
func newHold(m *Moment, lk *Lock, t *Terms, k Kind) *Hold {
	h := &Hold{Lock: lk, Terms: t, Kind: k, Number: m.world.Number(max(1, t.Permits))}
	h.Item.Value = h
	return h
}

// Rest is the TTL that h still needs at now: the time to its deadline, and the margin. A request that prolongs h sets at
// least this much, so that it cuts nothing short. It adds no more than the time of its way to Redis.
func (h *Hold) Rest(now time.Time) time.Duration {
	return validity.TTL(max(h.Deadline.Sub(now), time.Millisecond))
}

// IsStanding reports whether h is a claim that stands in the lock's queue in Redis, whose place is to be kept.
func (h *Hold) IsStanding() bool { return h.phase == standing }

// Converting reports whether a downgrade is to make h, and Redis has not answered it: which side it has is not known.
func (h *Hold) Converting() bool { return h.origin == byDowngrade && h.Lock.shared.converts(h) }

// Renewal returns the TTL that a renewal of h at now asks for; false: it is not renewed. What Extend has added is kept.
func (h *Hold) Renewal(now time.Time) (time.Duration, bool) {
	if !h.phase.owns() || !now.Before(h.Deadline) { // else it would keep a lock that is lost
		return 0, false
	}
	if h.Converting() {
		return 0, false // the answer schedules it again
	}
	return max(h.Terms.TTL, h.Rest(now)), true
}

// Extend is the event that a lease is to last for at least ttl from now. It returns the hold and the TTL to ask Redis for, or why
// nothing is to be asked.
func (lk *Lock) Extend(m *Moment, l *Lease, ttl time.Duration) (h *Hold, asked time.Duration, why *Verdict) {
	h = l.hold
	switch {
	case l.ended != nil: // by now the hold may be another caller's
		return nil, 0, l.ended
	case h.Converting(): // Redis may still have the write side, and would deny the other
		return nil, 0, Because(Unavailable, Downgrading)
	}
	h.extended = h.extended || ttl > h.Terms.TTL
	return h, max(ttl, h.Rest(m.Now())), nil
}

// Prolonged is the event that a request sent at sent has set the TTL of h to at least ttl. Two of them may come in
// either order.
func (lk *Lock) Prolonged(m *Moment, h *Hold, sent time.Time, ttl time.Duration) {
	if !h.phase.owns() {
		return // what is in the schedule is its end, see owe
	}
	if at := m.ageOf(sent); at > h.renewed {
		h.renewed, h.roundTrip = at, uint32(min(m.Now().Sub(sent).Microseconds(), math.MaxUint32))
	}
	if deadline := m.world.Schedule(h, renewal.Plan{What: renewal.Confirm, At: sent, Set: ttl, TTL: h.Terms.TTL}); deadline.After(h.Deadline) {
		h.Deadline = deadline
	}
}

// Slack is which part of the lease is left at now.
func (h *Hold) Slack(now time.Time) float64 {
	ttl := h.Terms.TTL
	if h.origin == byMessage && h.renewed == 0 {
		ttl = h.Terms.Claim
	}
	window := ttl - validity.Margin(ttl)
	return min(max(0, h.Deadline.Sub(now).Seconds()/window.Seconds()), 1)
}

// serves reports whether the caller of a request can be given h as it is.
func (h *Hold) serves(by *By) bool { return h.Kind == by.Kind && h.Terms.suit(by.Terms) }

// passes reports whether h may go to the caller of a request without a word to Redis. A fixed lease is never
// passed on: its time belongs to its caller. So does the time that Extend adds to another lease, because renewal
// shortens nothing.
func (h *Hold) passes(m *Moment, r *By) bool {
	return kinds[h.Kind].passes && h.reusable(m) && h.serves(r) && !(h.demand == demanded && h.sliceOver(m))
}

// reusable reports whether h may go to another caller at all.
func (h *Hold) reusable(m *Moment) bool {
	return m.set.Slice > 0 && !h.Terms.Fixed && h.Terms.AtLeast == 0 && !h.extended && (!h.Terms.Fencing || h.Tokens > 0) && h.sound(m)
}

// sound reports whether h is far enough from its deadline to be passed on: its renewal
// is not in trouble.
func (h *Hold) sound(m *Moment) bool {
	return validity.Valid(m.Now().Add(h.Terms.Claim/4), h.Deadline)
}

// scheduleFrom puts h into the schedule, whose TTL a request sent at sent has set. It returns the deadline.
func (h *Hold) scheduleFrom(m *Moment, sent time.Time, ttl time.Duration) time.Time {
	p := renewal.Plan{What: renewal.Renew, At: sent, Set: ttl, TTL: h.Terms.TTL}
	if h.Terms.Fixed {
		p.What = renewal.Fixed
	}
	return m.world.Schedule(h, p)
}

// endLimit ends the limit of a caller that has the hold no longer.
func (h *Hold) endLimit(m *Moment) {
	if h.Limit != nil {
		m.syncLimit(h.Limit)
		h.Limit = nil
	}
}
