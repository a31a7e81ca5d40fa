package engine

import (
	"github.com/holdfast-go/holdfast/internal/validity"
	"github.com/holdfast-go/holdfast/internal/wire"
)

// noticed is called with a message for a claim.
func (e *entry) noticed(h *hold, n wire.Notice) {
	m := e.moment()
	e.mu.Lock()
	e.engine.Stats.Wakeups.Add(1)
	e.noticedLocked(&m, h, n)
	e.stepLocked(&m)
	e.unlock(&m)
}

// noticedLocked takes a grant, or asks Redis about it where the message alone cannot be
// trusted.
//
// When the TTL of the claim began is computed from the server's clock in the message and an earlier reading of
// that clock (validity.Grant). One more round trip confirms the grant in three cases. The computation shows that
// the message may be late or a clock was set. This process has the lock already, because the lock was deleted in
// between. The claim needs what only an acquire gives: its own TTL (the releaser's leases are shorter), tokens or
// replicas' acknowledgement.
func (e *entry) noticedLocked(m *moment, h *hold, n wire.Notice) {
	if !h.phase.claim() {
		return // a request has found it; or it was given up, and its release is on its way
	}
	b := h.bid
	if b.waiter == nil || n.Granted && b.current != nil {
		// A release before the request under way is answered would have to leave a tombstone for it. The answer,
		// mostly a moment away, is the grant as well, or lets n stand, even for a waiter that has taken the
		// request over by then.
		kept := n // n itself would be on the heap each time
		b.notice = &kept
		return
	}
	switch {
	case n.Granted:
	case e.alarm.yields(): // it asks soon
		return
	case n.Left > 0 && e.alarm == alarmPoll:
		e.pollWithinLocked(m, n.Left+pastTTL)
		return
	default: // Redisson's turn; or the answer to the request under way may be from before the TTL was shortened
		e.armLocked(m, alarmGiveWay, redissonsTurn)
		return
	}
	h.turn = uint8(min(n.Turn, turnsInARow))
	if n.Others {
		h.demand = demandKnown
	}
	since, trusted := validity.Grant(m.now(), b.before, b.clock, n.Clock, n.Claim)
	if !trusted || len(e.conflictsLocked(h)) > 0 || e.engine.confirm || h.cfg.Fixed || h.cfg.Acks != nil || n.Claim < h.cfg.claim ||
		h.cfg.Fencing && n.Token < m.tokenSeen(e)+wire.TokensPerGrant { // none, or the counter was lost
		e.tryLocked(m, b.waiter)
		return
	}
	e.engine.Stats.Granted.Add(1)
	h.short = true
	if h.cfg.Fencing {
		h.tokens = wire.TokensPerGrant
	}
	e.grantedLocked(m, h, since, n.Claim, n.Token, grantedByServer)
}
