package lock

import (
	"time"

	"github.com/holdfast-go/holdfast/internal/validity"
	"github.com/holdfast-go/holdfast/internal/wire"
)

// granted makes the claim a hold of the process, whose TTL of ttl began no
// earlier than at since.
func (lk *Lock) granted(m *Moment, h *Hold, since time.Time, ttl time.Duration, lastToken uint64, how Mode) {
	w := h.bid.waiter
	left := lk.endBid(m, h)
	now, age := m.Now(), m.Age()
	if !validity.Valid(now, validity.Deadline(since, ttl)) {
		// The server may be about to expire it: this is no grant (S2 in docs/internals/VERIFICATION.md).
		lk.latest.untroubled()
		lk.troubled(m, TooLate)
		lk.refuse(m, lk.tries+1, Unavailable, TooLate)
		lk.giveUp(m, h, nil)
		lk.pause(m, since)
		return
	}
	if !lk.admits(h.Kind) {
		lk.displace(m, h)
	}
	lk.latest = latest{}
	h.phase, h.tenure = held, age
	if lk.absence != nil {
		lk.returned(m)
	}
	if h.Terms.Fencing {
		h.token = lastToken - uint64(h.Tokens)
		m.effects().Saw = lastToken
	}
	lk.take(h)
	h.Deadline = h.scheduleFrom(m, since, ttl)
	lk.heed(m, h)
	if left == PlaceLeft && how != ByServer && h.demand == demandUnknown && h.Terms.hears() {
		lk.ask(m, h) // a message would have said whether others stand behind it
	}
	lk.serve(m, h, w, how)
}

// serve gives a hold that has just been granted to the waiter whose claim it
// was, and one that is shared to the callers behind as well.
func (lk *Lock) serve(m *Moment, h *Hold, w *Waiter, how Mode) {
	lk.assign(m, h, w, how)
	if kinds[h.Kind].company == exclusive {
		lk.refuse(m, lk.tries+1, NotAcquired, nil) // another owner has it now
		return
	}
	lk.share(m, h, lk.waiters.head, how != AtOnce)
	lk.missed.add(missedLock) // a writer behind is to stand in the queue, a reader may need a hold of its own
}

// assign makes w's caller the owner of h.
func (lk *Lock) assign(m *Moment, h *Hold, w *Waiter, how Mode) {
	h.begin(m)
	if how != AtOnce {
		w.Waited = true
	}
	lk.deliver(m, w, h.grant(&w.By, how, m.Age()), nil)
}

// begin gives h the token and the limit of its next owner.
func (h *Hold) begin(m *Moment) {
	h.unlocked = false
	if h.Terms.Fencing {
		h.token++
		h.Tokens--
	}
	if d := h.Terms.MaxHold; d > 0 {
		h.Limit = &Limit{At: m.Now().Add(d), hold: h}
		m.syncLimit(h.Limit)
	}
}

// Reenter is the event that a caller whose context carries outer wants the lock. It reports false if outer is not held.
func (lk *Lock) Reenter(outer *Lease, by *By, now time.Time, age time.Duration) (l *Lease, held bool, v *Verdict) {
	h := outer.hold
	switch {
	case !outer.Held(now):
		return nil, false, nil
	case h.Upgrades(by.Kind):
		return nil, true, Because(WouldDeadlock, Upgrade)
	case by.Terms.Fencing && !h.Terms.Fencing:
		return nil, true, Because(Tokenless)
	}
	return h.grant(by, Reentry, age), true, nil
}

// pass is called when the last lease on h is gone. It passes h to the next caller
// here if that is allowed, else back to Redis. It returns the release, nil if there is
// none.
func (lk *Lock) pass(m *Moment, h *Hold, trace any) *Release {
	if h.phase != held {
		return nil
	}
	h.endLimit(m)
	if w := lk.waiters.head; w != nil && h.passes(m, &w.By) {
		lk.askDemand(m, h)
		lk.assign(m, h, w, ByHandoff)
		if h.Kind.Shared() {
			lk.step(m) // the next may get a hold beside it
		} else {
			lk.refuse(m, lk.tries+1, NotAcquired, nil)
		}
		return nil
	}
	return lk.idle(m, h, trace)
}

// idle is for a hold that has no lease and that is not passed on: no caller of this process uses it. It lingers, or goes back to Redis.
func (lk *Lock) idle(m *Moment, h *Hold, trace any) *Release {
	if lk.linger(m, h) {
		return nil
	}
	if h.stayFor(m, m.Now()) > 0 {
		lk.missed.add(missedLock) // a waiter may know of another end
	}
	if w := lk.waiters.head; w != nil && !lk.bidOf(w).standing() {
		lk.missed.add(missedLock) // this one is in no queue, so no release tells it
	}
	r := lk.giveUp(m, h, trace)
	r.why = unlocked
	lk.step(m)
	return r
}

// giveUp gives h back to Redis.
func (lk *Lock) giveUp(m *Moment, h *Hold, trace any) *Release {
	converting := h.Converting()
	lk.without(m, h, nil)
	r := lk.startRelease(m, h, NothingLeft, trace)
	r.unclear = converting // the downgrade became a release too, and one of the two finds nothing
	return r
}

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
	b := h.bid
	if b == nil {
		return // a request has found it; or it was given up, and its release is on its way
	}
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
		h.demand = demanded
	}
	since, trusted := validity.Grant(m.Now(), b.before, b.clock, n.Clock, n.Claim)
	if !trusted || !lk.admits(h.Kind) || m.set.Confirm || h.Terms.Fixed || h.Terms.AckWithin > 0 || n.Claim < h.Terms.Claim ||
		h.Terms.Fencing && n.Token < m.world.TokenSeen(lk.Keys)+wire.TokensPerGrant { // none, or the counter was lost
		lk.try(m, b.waiter)
		return
	}
	h.origin = byMessage
	if h.Terms.Fencing {
		h.Tokens = wire.TokensPerGrant
	}
	lk.granted(m, h, since, n.Claim, n.Token, ByServer)
}
