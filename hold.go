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
	cfg   *lockConfig
	keys  *wire.Keys // of the handle it was asked for with
	owner any        // wire owner id (string), boxed for argument lists; never used again
	n     uint64     // what the owner id ends with

	item renewal.Item[*hold] // guarded by the scheduler

	// The following is guarded by entry.mu. There can be many thousand holds: the order
	// leaves no gaps.

	phase      phase
	unclear    bool   // an acquire request ended without telling whether it ran
	owed       bool   // ended early with the key possibly still ours: Unlock gives it back
	unanswered int32  // acquire requests without reply
	passed     int32  // how often it went from one caller to the next
	tokens     uint32 // fencing tokens asked for; once granted, those left
	token      uint64 // the last fencing token given out

	deadline time.Time     // until then the hold is trusted
	tenure   time.Duration // since when, after Manager.epoch, this process has the lock
	leases   *Lease        // the caller's live leases, linked by next: several after re-entry
	limit    *limit        // of the caller, by WithMaxHold; nil: none
}

// caller returns who has the hold, nil if nobody.
func (h *hold) caller() *owner {
	if h.leases == nil {
		return nil
	}
	return h.leases.owner
}

// limit is when a caller's time ends by WithMaxHold.
type limit struct {
	at    time.Time
	timer *time.Timer
}

// newHold begins a claim with the options of a handle.
func newHold(e *entry, by *handle) *hold {
	n := e.m.holds.Add(1)
	h := &hold{entry: e, cfg: by.cfg, keys: by.keys, n: n, owner: wire.OwnerID(e.m.owners, n)}
	h.item.Value = h
	return h
}

// stray reports whether an acquire request of h may still reach Redis: then giving h
// up or back must leave a tombstone.
func (h *hold) stray() bool { return h.unanswered > 0 || h.unclear }

// serves reports whether the caller of a request can be given h as it is.
func (h *hold) serves(cfg *lockConfig) bool {
	return (h.cfg == cfg || *h.cfg == *cfg) && (!cfg.fencing || h.tokens > 0)
}

// passes reports whether h may go to a caller with cfg without a word to Redis. A
// fixed lease is never passed on: its time belongs to the caller who asked for it.
func (h *hold) passes(cfg *lockConfig, now time.Time) bool {
	m := h.entry.m
	return m.slice > 0 && !h.cfg.fixed && h.serves(cfg) &&
		now.Sub(m.epoch)-h.tenure < m.slice &&
		validity.Valid(now.Add(h.cfg.ttl/4), h.deadline) // not into trouble with renewal
}

// endLimit ends the caller's limit: its time is over in another way.
func (h *hold) endLimit() {
	if h.limit != nil {
		h.limit.timer.Stop()
		h.limit = nil
	}
}

// drop takes a lease that has ended off h and reports whether it was the last.
func (h *hold) drop(l *Lease) (last bool) {
	for at := &h.leases; *at != nil; at = &(*at).next {
		if *at == l {
			*at, l.next = l.next, nil
			return h.leases == nil
		}
	}
	return false
}
