package lock

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

// Of is the lock.
func (b *Busy) Of() *Lock { return b.Hold.lock }

// Nothing comes of it, whatever becomes of it.

func (b *Busy) Replied(*Moment, *Copy, *Reply) (spent bool) { return false }
func (b *Busy) Overdue(*Moment, *Copy)                      {}
func (b *Busy) Stranded(*Moment, *Copy)                     {}

// asksHolder reports whether TryLocks that Redis has refused with v wait for the holder's answer: while no other caller
// stands before them here or elsewhere.
func (lk *Lock) asksHolder(m *Moment, b *Bid, v *Reply) bool {
	w := b.waiter
	if v.State != Lingering || lk.rules().bidsEach || !w.Once || w != lk.waiters.head {
		return false
	}
	if b.asks == 0 {
		b.asks = m.Age() + m.world.AnswerPatience()
	}
	return m.Age() < b.asks
}

// awaitAnswer goes on after that: with the request that asks, if t was not one.
func (lk *Lock) awaitAnswer(m *Moment, t *Try, v *Reply) {
	if !t.Asks {
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
