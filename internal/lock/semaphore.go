package lock

// semaphoreRules are those of a semaphore: each owner has permits of its own beside the others. One claim at a time stands for all
// waiters of the process, as for a mutex, so that processes take turns. A hold goes to the next caller here that wants as many.
var semaphoreRules = rules{company: beside, passes: true}

// tooMany is for a claim of more permits than there are. Redis has taken away the place that it had, so that it is in the way of no
// other. A caller whose own semaphore has fewer learns of it. Any other goes behind those here, and asks again: the number was cut,
// and may be set again. The callers of a paused semaphore stay in their order, because none of them gets a permit. They listen to
// Redisson's channel, on which nothing is announced until it goes on.
func (lk *Lock) tooMany(m *Moment, t *Try, v *Reply) {
	h, w := t.Hold, t.Hold.bid.waiter
	if h.phase == standing {
		m.world.Forget(h)
		h.phase = claimed
	}
	switch {
	case h.Terms.Permits > h.Terms.Total:
		lk.deliver(m, w, nil, Because(TooManyPermits))
		lk.missed.add(missedLock)
	case w.Once:
		lk.turnDown(m, t)
	default:
		lk.undo(m, h)
		if lk.Listening = v.Total == 0; !lk.Listening {
			lk.waiters.remove(w)
			lk.waiters.push(w)
		}
		if front := lk.waiters.head; front.Terms.Permits < h.Terms.Permits {
			lk.missed.add(missedLock)
		} else {
			lk.arm(m, alarmPoll, lk.PollAfter(m, -1))
		}
	}
}
