package lock

import (
	"time"

	"github.com/holdfast-go/holdfast/internal/validity"
)

// Release gives up a hold in Redis, or a claim that may have been granted, or several claims of a fair lock, of
// which Hold is one (place.go).
type Release struct {
	Repeated
	Claims []*Hold // that leave together, those with a tombstone first; nil: only Hold is given up
	Late   int     // how many of the claims get a tombstone
	Stay   Stay
	Left   Left
	why    why
}

// Stay is another owner id that takes the place of a hold in Redis when that is given up, so that the lock stays taken for a while: for
// WithHoldAtLeast, or for a ticket.
type Stay struct {
	Rest   time.Duration // for how long; 0: the lock does not stay taken
	Owners string        // what that id begins with; empty: as all of the process
	Number uint64        // and ends with
}

// Left is what may be left of the acquire of what is given up.
type Left uint8

const (
	NothingLeft Left = iota
	PlaceLeft        // it stood in the queue in Redis
	CopiesLeft       // likewise, perhaps, and a tombstone is to refuse late copies
)

// why is why something is given up.
type why uint8

const (
	unwanted why = iota // a claim, or what a caller has lost or never got
	unlocked            // a hold: if Redis does not know it, that is a loss
	detached            // a hold: likewise, and no caller has its lock then
)

// Burial is for how long a tombstone refuses late copies of an acquire request. A
// copy can lie in a socket's buffer for as long as the kernel retransmits; one that
// comes later still takes the lock for one TTL, unrenewed.
const Burial = time.Minute

// startRelease begins the release of h, whose phase is over. left is what may be left in Redis beside late copies of its acquire.
func (lk *Lock) startRelease(m *Moment, h *Hold, left Left, trace any) *Release {
	r := newRelease(m, h, left)
	r.start(m, trace)
	return r
}

// newRelease says what is sent, and until when.
func newRelease(m *Moment, h *Hold, left Left) *Release {
	r, now := new(Release), m.Now()
	r.isFor(m, h, r)
	r.Left = h.leaves(left)
	r.until = h.goneBy(m, r.Left, now)
	if r.Stay.Rest = h.stayFor(m, now); r.Stay.Rest > 0 {
		r.Stay.Number = m.world.Number(max(1, h.Terms.Permits))
	}
	return r
}

// start sends the first request. New requests for the lock wait for it as long as Unlock does.
func (r *Release) start(m *Moment, trace any) {
	lk := r.lock
	if r.heard == nothing {
		r.colliding = 1
		lk.releasing++
	}
	lk.latest.asked(m.Age())
	m.effects().Report.More++
	r.send(m, trace)
}

// leaves is what may be left of the acquire of h with its late copies.
func (h *Hold) leaves(left Left) Left {
	if h.stray() {
		return CopiesLeft
	}
	return left
}

// goneBy is when h, which is given up now, is gone from Redis by itself, and late copies of its acquire as well.
func (h *Hold) goneBy(m *Moment, left Left, now time.Time) time.Time {
	rest := validity.TTL(max(0, h.Deadline.Sub(now))) // more than the lease's, if it was extended
	if left != NothingLeft {
		rest = max(rest, m.set.Patience) // so long Redis keeps a place in the queue
	}
	until := now.Add(max(h.Terms.TTL, MaxClaim, rest) + time.Second)
	if h.extended { // perhaps by more than is known, if Extend was not answered: until this is
		until = until.Add(validity.MaxTTL)
	}
	if left == CopiesLeft {
		until = until.Add(Burial)
	}
	return until
}

// restart asks again after the release was given up.
func (r *Release) restart(m *Moment) {
	r.settled, r.verdict, r.pauses, r.barred = false, nil, 0, 0
	m.effects().Report.More++
	r.copy(m)
}

func (r *Release) Replied(m *Moment, c *Copy, reply *Reply) {
	lk := r.lock
	counts := r.endsWith(m, c, reply)
	lk.answered(m, reply)
	if reply.Next != nil { // even if the release was settled before
		lk.noticed(m, reply.Next, reply.Notice)
	}
	if !counts {
		if reply.Next != nil {
			lk.step(m)
		}
		return
	}
	switch reply.Says {
	case Done:
		if reply.Wanted {
			lk.giveWay(m)
		}
		r.settle(m, nil)
	case HandedOver:
		lk.handedOver(m)
		r.settle(m, nil)
	case Crowded:
		r.handOn(m)
	case Gone, Stolen:
		if r.stray() {
			lk.missed.add(missedLock) // a copy that ran may have granted it here, as only its reply says
		}
		verdict := r.gone(m, reply.Says)
		if verdict.Is(LeaseLost) && (r.why == unlocked || r.why == detached) {
			m.end(Ended{Lock: lk, Lease: r.lease, How: Lost, Reason: verdict.Reason}) // a deferred Unlock drops its error
		}
		r.settle(m, verdict)
	default:
		if r.troubled(m, reply) {
			r.settle(m, Because(Unavailable, r.trouble))
		} else {
			r.again(m)
		}
	}
	lk.step(m)
}

// handOn is for a lock that has been released and is free, while more dead waiters stand in front of its
// queue than one request removes. The next requests go on until a waiter has the lock. Unlock does not wait for
// them.
func (r *Release) handOn(m *Moment) {
	r.tell(m, nil)
	r.unclear = true // that the owner id is gone is no loss
	if r.why == unlocked {
		r.why = unwanted
	}
	if r.Claims == nil {
		r.Left, r.flying, r.dead = r.Hold.leaves(PlaceLeft), 0, 0
		r.generation++
	}
	r.send(m, nil)
}

// gone is the verdict when the owner id was not in the lock any more. If a copy of this request may have
// run, it was that copy: the lease was valid when Unlock was called, and only this release, or a deletion by hand,
// ends a lock within its window. If the window has ended since, as the TTL does while Redis cannot be reached,
// that was the end of the lock, and the lease did what it had promised. In all other cases the lease had been lost
// unnoticed, including a host that slept beyond the deadline before the call, which timers do not notice.
//
// A copy of a Detach would have found the owner id of its ticket, unless the time of the ticket is over, or its caller has been told before
// that the outcome is unknown: then the ticket may have been used since.
//
// Rejected alternative: a key that remembers each release, as Redisson's unlock latch. It costs one more write and
// a live key for seconds per unlock, to tell "released" from "deleted by hand at the very moment of a lost reply".
func (r *Release) gone(m *Moment, says Says) *Verdict {
	untold := r.why == detached && r.heard == nothing && m.Now().Before(r.began.Add(r.Stay.Rest))
	if !untold && !r.lapsed && (r.stray() || !validity.Valid(m.Now(), r.Hold.Deadline)) {
		return nil
	}
	reason := LostDeleted
	if says == Stolen {
		reason = LostStolen
	}
	return lostBy(reason)
}

// giveWay is how long a process that released a lock while others listened stays out of their way: longer than a
// message and a request take, so that they come first, and short enough not to matter if they did not want it.
const giveWay = 2 * time.Millisecond

// redissonsTurn is how long a lock that was left open for Redisson stays so: a JVM takes longer than Holdfast, and
// it happens once in 16 grants.
const redissonsTurn = 5 * time.Millisecond

// giveWay decides when to ask again after a release that other clients heard of.
func (lk *Lock) giveWay(m *Moment) {
	if lk.waiters.len > 0 {
		lk.missed.take(missedLock)
		lk.arm(m, alarmGiveWay, giveWay)
	}
}

// A lock that is held at least for a time stays taken in Redis when its caller gives it up earlier. Another owner
// id takes the place of the hold's, with a TTL of the rest. No process has or renews that one, so Redis alone ends
// it, whatever becomes of the process. The requests of waiters find that TTL, as that of any other owner, and are
// sent again when it is over. The next waiter in the queue, which may know of a longer TTL, gets a message, and
// so does the one behind it if that one leaves.
//
// Rejected alternative: the TTL of the hold itself is changed. A renewal that is under way at that moment would set it to
// the lease again, and a late copy of the acquire too.

// stayFor is for how long a hold that is given up at now stays taken; 0: it does not.
func (h *Hold) stayFor(m *Moment, now time.Time) time.Duration {
	if !h.unlocked || h.Terms.AtLeast == 0 {
		return 0
	}
	rest := h.Terms.AtLeast - (m.ageOf(now) - h.tenure) // it is never passed on, so that is since its grant
	if rest < time.Millisecond {
		return 0
	}
	return rest
}
