package lock

// Enter is the event that a caller comes. If w is not parked after it, its outcome is there. No request will bring anything if
// shut is why; nil: some may.
func (lk *Lock) Enter(m *Moment, w *Waiter, shut error) (l *Lease, v *Verdict, parked bool) {
	if lk.life == lifeClosed {
		return nil, Because(Closed), false
	}
	if shut != nil {
		return nil, Because(Unavailable, shut), false
	}
	if lk.waiters.len == 0 {
		if l := lk.takeUp(m, &w.By); l != nil {
			return l, nil, false
		}
	}
	if lk.waiters.len == 0 && lk.hold == nil && !lk.reads.none() {
		if l := lk.enterBeside(m, w); l != nil {
			return l, nil, false
		}
	}
	lk.dismissAll(m) // what lingers, and this caller cannot use
	if w.Once && lk.inTheWay(w.Kind, m.Now()) {
		return nil, Because(NotAcquired), false
	}
	switch {
	case lk.hold != nil && lk.hold.leases != nil:
		w.Came = max(m.roughly(), lk.hold.leases.since) // it came after that lease
	case lk.hold == nil && lk.waiters.len == 0:
		w.Came = m.Age()
		lk.known.since = w.Came // what was before is nothing to this caller
	default:
		w.Came = m.roughly()
	}
	w.stood = lk.waiters.len > 0 || !lk.admits(w.Kind)
	lk.park(w)
	if w.Once || lk.waiters.len == 1 && !lk.stepAside(m) {
		lk.missed.add(missedLock)
	}
	lk.step(m)
	return nil, nil, true
}

// park puts a caller behind all others.
func (lk *Lock) park(w *Waiter) {
	w.after, w.behind = lk.tries, lk.releasing+lk.leftBehind()
	lk.waiters.push(w)
	if w.Once {
		lk.onces++
	}
}

// IsIdle reports whether a caller that wants several locks at a time can have this one taken together with others.
func (lk *Lock) IsIdle() bool {
	return lk.life != lifeClosed && lk.waiters.len == 0 && lk.hold == nil && lk.releasing+lk.leftBehind() == 0
}

// EnterWith is Enter for a caller that wants several locks at a time, with the first answer: to one request, of which the shell
// gives this lock its answer.
func (lk *Lock) EnterWith(m *Moment, w *Waiter) *Try {
	w.Once, w.Came = true, m.Age()
	lk.park(w)
	t := lk.newTry(m, w)
	t.apart, t.patience = true, m.world.AcquirePatience(w.Terms, true)
	return t
}

// Leave is the event that the context of w's caller has ended, for these causes. It reports false if w has left the queue
// before: then its outcome counts, unless that is a lease, which the caller gives back. v is what the caller learns, and waited says whether another owner stood in its way.
func (lk *Lock) Leave(m *Moment, causes []error, w *Waiter) (v *Verdict, waited, left bool) {
	busy := lk.busy(w)
	v = lk.noVerdict(m, causes, w)
	if !lk.waiters.remove(w) {
		return v, false, false
	}
	lk.left(m, w)
	lk.step(m)
	return v, (busy || w.stood) && !w.Once, true // else Redis was silent, and no owner stood in the way
}

// Expel is Leave for a caller that is told of it, unless it was told before.
func (lk *Lock) Expel(m *Moment, causes []error, w *Waiter) {
	if !w.parked {
		return
	}
	if lk.busy(w) || w.stood {
		w.waited()
	}
	lk.deliver(m, w, nil, lk.noVerdict(m, causes, w))
	lk.step(m)
}
