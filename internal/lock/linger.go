package lock

import "time"

// A lock whose terms say so (WithLinger) lingers: when its last lease is given up and no caller waits, the process keeps what it has in
// Redis, and its next caller gets that without a request. Other processes know by the owner id that it may linger. The
// scripts that refuse a caller because of such an owner tell its process that the lock is wanted, when the caller takes its place in
// the queue and each time that it polls. Then the process gives the lock up, by a release, which grants it to the
// first in that queue. If the message is lost, the next poll sends another one. If the process is dead, or hears nothing, the
// lock ends with its TTL, as any other.
//
// A lock that processes take in turns gains nothing: each turn costs one message more, and no caller finds the lock kept. So the
// process counts idle times in a row that another process has ended. From unusedMost on, one Unlock in unusedSkips lingers, until a
// caller of the process takes one up.
//
// Redisson's waiters tell no holder. A question finds them (demand.go): once per slice of use, and once a second while
// the lock lingers.
//
// Rejected alternative: the process tells Redis that the lock lingers, so that a release there could take it. That is a command
// for each Unlock and each Lock, which is what lingering saves.

// lingerLook is how often a process asks whether a lock that lingers is wanted.
const lingerLook = time.Second

// See above. In strict turns of two processes, each idle time costs about 0.4 turns. 1 in 32 of them is too few to measure.
const (
	unusedMost  = 16
	unusedSkips = 32
)

// A TryLock waits for the answer of a holder that may linger for so many round trips, which have four ways in them and may meet busy
// processes; and at least for so long, because Go reads messages tens of milliseconds late while its goroutines are busy.
const (
	answerTrips = 8
	leastAnswer = 100 * time.Millisecond
)

// hears reports whether other processes tell this one that they want the lock.
func (t *Terms) hears() bool { return t.Linger > 0 || t.Wanted }

// heed has the process hear that h, which it has got, is wanted.
func (lk *Lock) heed(m *Moment, h *Hold) {
	if !h.Terms.hears() {
		return
	}
	if n := m.world.Expect(h); n != nil && n.Wanted {
		lk.wanted(m, h, n.Asker)
	}
}

// unheed ends that.
func (lk *Lock) unheed(m *Moment, h *Hold) {
	if h.phase == lingering {
		h.Lingers = 0
	}
	if h.Terms.hears() && h.phase.owns() {
		m.world.Forget(h)
	}
}

// linger is called when no caller of this process uses h. It reports whether h lingers.
func (lk *Lock) linger(m *Moment, h *Hold) bool {
	switch {
	case h.Terms.Linger == 0, !h.unlocked, h.demand == demanded, lk.waiters.len > 0, lk.life != lifeOpen, h.Converting(), !h.reusable(m):
		return false
	case m.knows().Inbox == InboxDenied: // no process could tell this one that it wants the lock
		return false
	case lk.unused >= unusedMost && lk.skipsLinger():
		return false
	}
	if other := lk.Lingering(); other != nil {
		lk.giveUp(m, other, nil)
	}
	h.phase, h.Lingers = lingering, m.Age()
	if next := min(h.Terms.Linger, lingerLook); lk.alarm != alarmLinger || lk.Rings > h.Lingers+next {
		lk.arm(m, alarmLinger, next) // else it comes no later, and sees since when h lingers
	}
	return true
}

// skipsLinger is called when too many idle times in a row were of no use. It reports whether an Unlock gives the lock up that could linger.
func (lk *Lock) skipsLinger() bool {
	if lk.unused++; lk.unused < unusedMost+unusedSkips {
		return true
	}
	lk.unused = unusedMost - 1
	return false
}

// takeUp gives h, which lingers, to a caller that has just come. It returns nil if the caller cannot use it.
func (lk *Lock) takeUp(m *Moment, h *Hold, by *By) *Lease {
	if !h.serves(by) || !h.reusable(m) {
		return nil
	}
	lk.unused, h.Lingers = 0, 0
	h.phase = held
	lk.askDemand(m, h)
	h.begin(m)
	return h.grant(by, ByHandoff, m.Age())
}

// Dismiss is the event that too many locks linger. h did when that was found out.
func (lk *Lock) Dismiss(m *Moment, h *Hold) {
	if h.phase == lingering {
		lk.giveUp(m, h, nil)
	}
	lk.step(m)
}

// look is called by the alarm.
func (lk *Lock) look(m *Moment) {
	h := lk.Lingering()
	if h == nil {
		return // in use: the next Unlock sets the alarm
	}
	left := h.Terms.Linger - (m.Age() - h.Lingers)
	if left <= 0 {
		lk.giveUp(m, h, nil)
		return
	}
	if h.demand == demandUnknown && m.Age()-h.tenure >= lingerLook/2 { // the last reply began the slice, some time after the last look
		lk.askWith(m, h, Question{Echo: EchoInbox}) // nothing else shows that messages from others would arrive
	}
	lk.arm(m, alarmLinger, min(left, lingerLook))
}

// unheeded is called when messages may have been missed, or when Redis denies the process the inbox.
func (lk *Lock) unheeded(m *Moment) {
	for _, h := range lk.Holds() {
		switch {
		case !h.Terms.hears():
		case m.knows().Inbox == InboxDenied:
			if h.phase == lingering {
				lk.giveUp(m, h, nil)
			}
		case h.demand == demandUnknown:
			lk.ask(m, h)
		}
	}
}

// wanted is called when another process wants the lock, which h has, or will have. asker is the owner id of a TryLock that asks;
// empty: none does.
func (lk *Lock) wanted(m *Moment, h *Hold, asker string) {
	if h.phase == over {
		return
	}
	h.demand = demanded
	if asker == "" {
		h.tellWanted(m)
	}
	switch {
	case h.phase == lingering:
		lk.unused++
		lk.giveUp(m, h, nil)
	case h.phase == held && asker != "": // one of a version that does not know of WithWanted asks its holders, too
		m.send(lk, Send{Request: &Busy{Hold: h, Asker: asker}, Patience: m.askPatience()})
	}
}

// A TryLock that finds an owner that may linger asks it: it takes a place in the queue, which tells the holder's process. That
// gives the lock up if it lingers, and the release grants it to the TryLock; or it answers that the lock is
// in use. A process that is dead, or hears nothing, does not answer. When its patience is over, the TryLock sends one more request, because
// the answer may be a grant that it has not heard.
//
// A fair lock does not ask: the only holder that may linger is a mutex of the same name.

// Busy is that answer. It is sent once: the TryLock's patience makes up for one that is lost.
type Busy struct {
	Hold  *Hold
	Asker string // the owner id of the TryLock
}

// Nothing comes of it, whatever becomes of it.

func (b *Busy) Replied(*Moment, *Copy, *Reply) {}
func (b *Busy) Overdue(*Moment, *Copy)         {}
func (b *Busy) Stranded(*Moment, *Copy)        {}

// asksHolder reports whether TryLocks that Redis has refused with v wait for the holder's answer: while no other caller
// stands before them here or elsewhere.
func (lk *Lock) asksHolder(m *Moment, b *Bid, v *Reply) bool {
	w := b.waiter
	if v.State != Lingering || kinds[lk.Family].bidsEach || !w.Once || w != lk.waiters.head {
		return false
	}
	if b.asks == 0 {
		b.asks = m.Age() + max(leastAnswer, min(answerTrips*m.knows().RoundTrip, time.Second))
	}
	return m.Age() < b.asks
}

// awaitAnswer goes on after that: with the request that asks, if t was not one.
func (lk *Lock) awaitAnswer(m *Moment, t *Try, v *Reply) {
	if t.Place != AskPlace {
		lk.missed.add(missedLock)
		return
	}
	lk.arm(m, alarmAsk, min(t.Hold.bid.asks-m.Age(), lk.PollAfter(m, v.TTL)))
}

// toldBusy is called with the answer that the lock is in use. A late one, to a request before, is true as well.
func (lk *Lock) toldBusy(m *Moment, b *Bid) {
	if w := b.waiter; w != nil && w.Once && b.asks != 0 {
		lk.refuse(m, lk.tries+1, NotAcquired, nil)
	}
}
