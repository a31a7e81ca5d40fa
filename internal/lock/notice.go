package lock

import (
	"github.com/holdfast-go/holdfast/internal/validity"
	"github.com/holdfast-go/holdfast/internal/wire"
)

// Noticed is the event of a message for a claim, or for a hold that may linger.
func (lk *Lock) Noticed(m *Moment, h *Hold, n wire.Notice) {
	lk.noticed(m, h, n)
	lk.step(m)
}

// noticed takes a grant, or asks Redis about it where the message alone cannot be
// trusted.
//
// When the TTL of the claim began is computed from the server's clock in the message and an earlier reading of
// that clock (validity.Grant). One more round trip confirms the grant in three cases. The computation shows that
// the message may be late or a clock was set. This process has the lock already, because the lock was deleted in
// between. The claim needs what only an acquire gives: its own TTL (the releaser's leases are shorter), tokens or
// replicas' acknowledgement.
func (lk *Lock) noticed(m *Moment, h *Hold, n wire.Notice) {
	if n.Wanted {
		lk.wanted(m, h, n.Asker)
		if !n.Granted {
			return
		}
	}
	if !h.phase.claim() {
		return // a request has found it; or it was given up, and its release is on its way
	}
	b := h.bid
	if n.Busy {
		lk.toldBusy(m, b)
		return
	}
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
	case lk.alarm.yields(): // it asks soon
		return
	case n.Left > 0 && lk.alarm == alarmPoll:
		b.ends = m.Age() + n.Left
		lk.pollWithin(m, n.Left+pastTTL)
		return
	default: // Redisson's turn; or the answer to the request under way may be from before the TTL was shortened
		lk.arm(m, alarmGiveWay, redissonsTurn)
		return
	}
	h.Turn = uint8(min(n.Turn, m.set.Turns))
	if n.Others {
		h.demand = demandKnown
	}
	since, trusted := validity.Grant(m.Now(), b.before, b.clock, n.Clock, n.Claim)
	if !trusted || !lk.admits(h.Kind) || m.set.Confirm || h.Terms.Fixed || h.Terms.Acked || n.Claim < h.Terms.Claim ||
		h.Terms.Fencing && n.Token < m.world.TokenSeen(lk.keys)+wire.TokensPerGrant { // none, or the counter was lost
		lk.try(m, b.waiter)
		return
	}
	m.effects().Counts.Granted++
	h.short = true
	if h.Terms.Fencing {
		h.Tokens = wire.TokensPerGrant
	}
	lk.granted(m, h, since, n.Claim, n.Token, ByServer)
}
