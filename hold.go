package holdfast

import (
	"time"

	"github.com/holdfast-go/holdfast/internal/renewal"
	"github.com/holdfast-go/holdfast/internal/validity"
	"github.com/holdfast-go/holdfast/internal/wire"
)

// phase is where a hold is in its life.
//
//	claimed ──granted──► held ──released, lost, ended──► over
//	   └────────── given up, undone ─────────────────────►┘
type phase uint8

const (
	claimed phase = iota // asked for; Redis may or may not have granted it
	held                 // granted and trusted until its deadline
	over                 // released, lost or given up; never held again
)

// hold is what this process has in Redis for one lock: one owner id, one TTL, one
// deadline. Leases are what callers have on top of it. A hold begins as a claim,
// before Redis has answered, because its owner id is what an unclear answer is
// resolved by.
type hold struct {
	entry *entry
	cfg   lockConfig
	ttl   any    // cfg.ttl in milliseconds, boxed
	owner any    // wire owner id (string), boxed for argument lists; never used again
	n     uint64 // what the owner id ends with
	block uint64 // fencing tokens asked for with the grant

	item renewal.Item[*hold] // guarded by the scheduler

	// The following is guarded by entry.mu.

	phase      phase
	unanswered int  // acquire requests without reply
	unclear    bool // an acquire request ended without telling whether it ran

	deadline time.Time // until then the hold is trusted
	tenure   time.Time // since when this process has the lock, over all its callers
	passed   int       // how often it went from one caller to the next
	token    uint64    // the last fencing token given out
	tokens   uint64    // the last one reserved

	caller *owner      // who has it
	limit  time.Time   // when the caller's time ends by WithMaxHold; zero: never
	timer  *time.Timer // at limit
	leases []*Lease    // the caller's live leases: several after re-entry
	lease1 [1]*Lease   // backs leases in the common case
	owed   bool        // ended early with the key possibly still ours: Unlock gives it back
	first  try         // the first request, embedded to save its allocation
}

// newHold begins a claim with the options of a handle.
func newHold(e *entry, by *handle) *hold {
	n := e.m.holds.Add(1)
	h := &hold{entry: e, cfg: by.cfg, ttl: by.ttl, n: n, owner: wire.OwnerID(e.m.owners, n)}
	h.item.Value = h
	h.leases = h.lease1[:0]
	return h
}

// stray reports whether an acquire request of h may still reach Redis: then giving h
// up or back must leave a tombstone.
func (h *hold) stray() bool { return h.unanswered > 0 || h.unclear }

// serves reports whether the caller of a request can be given h as it is.
func (h *hold) serves(cfg lockConfig) bool {
	return h.cfg == cfg && (!cfg.fencing || h.token < h.tokens)
}

// maxPasses bounds how many callers of one process take a lock after each other,
// together with the hand-off slice: 128 short sections cost the others less than one
// slice and the process a thousandth of a round trip each.
const maxPasses = 128

// passes reports whether h may go to a caller with cfg without a word to Redis. A
// fixed lease is never passed on: its time belongs to the caller who asked for it.
func (h *hold) passes(cfg lockConfig, now time.Time, slice time.Duration) bool {
	return slice > 0 && !h.cfg.fixed && h.serves(cfg) &&
		h.passed < maxPasses && now.Sub(h.tenure) < slice &&
		validity.Valid(now.Add(h.cfg.ttl/4), h.deadline) // not into trouble with renewal
}

// stopTimer ends the caller's limit: its time is over in another way.
func (h *hold) stopTimer() {
	if h.timer != nil {
		h.timer.Stop()
	}
	h.limit, h.timer = time.Time{}, nil
}

// drop takes a lease that has ended off h and reports whether it was the last.
func (h *hold) drop(l *Lease) (last bool) {
	for i, x := range h.leases {
		if x == l {
			n := len(h.leases) - 1
			h.leases[i] = h.leases[n]
			h.leases[n] = nil
			h.leases = h.leases[:n]
			return n == 0
		}
	}
	return false
}
