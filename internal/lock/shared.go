package lock

import (
	"slices"
	"time"
)

// Several owners can hold a lock at a time: readers, and owners of permits. A semaphore has a hold for each of them. Readers of a process
// share one where they can.

// Shared reports whether several owners in several processes can hold a lock of this kind at a time.
func (k Kind) Shared() bool { return kinds[k].company != exclusive }

// Reenters reports whether a caller under the context of a lease shares its hold.
func (k Kind) Reenters() bool { return kinds[k].company != beside }

// inTheWay reports whether a hold or a waiter of this process keeps a caller that does not wait from getting
// the lock. A hold beyond its deadline does not, even if its end has not been handled yet, after a pause of the
// process. Then the caller sends a request.
func (lk *Lock) inTheWay(k Kind, now time.Time) bool {
	switch front := lk.waiters.head; {
	case lk.hold != nil:
		return now.Before(lk.hold.Deadline)
	case k.Shared():
		return front != nil && !front.Once && kinds[front.Kind].company != joint
	}
	return slices.ContainsFunc(lk.shared.all(), func(h *Hold) bool { return now.Before(h.Deadline) })
}

// Upgrades reports whether an owner of h that wants a lease of kind k would wait for itself.
func (h *Hold) Upgrades(k Kind) bool { return h.Kind == ReadKind && k == WriteKind }

// isLeftToReaders reports whether h is of the write side, and has leases of the read side only.
func (h *Hold) isLeftToReaders() bool {
	if h.Kind != WriteKind {
		return false
	}
	for l := h.leases; l != nil; l = l.next {
		if l.kind == WriteKind {
			return false
		}
	}
	return true
}

// shares reports whether a reader can use the read hold h of another. One with a limit
// or an end of its own cannot; nor one that needs a token, if h has a writer's, which excluded it.
func (h *Hold) shares(r *By) bool {
	return kinds[h.Kind].company == joint && h.serves(r) && !h.Terms.Fixed && h.Terms.MaxHold == 0 && h.Terms.AtLeast == 0 && !(h.Terms.Fencing && h.origin == byDowngrade)
}

// joins reports whether a new reader may come in on h: not if Extend has made it last for longer,
// see passes.
func (h *Hold) joins(m *Moment, r *By) bool {
	return h.shares(r) && !h.extended && h.demand != demanded && h.sound(m)
}

// enterBeside lets w's caller in on a hold that it can share, if there is one.
func (lk *Lock) enterBeside(m *Moment, w *Waiter) *Lease {
	for _, h := range lk.shared.all() {
		if h.joins(m, &w.By) {
			lk.askDemand(m, h)
			return h.grant(&w.By, ByHandoff, m.Age())
		}
	}
	return nil
}

// share lets in the readers from w on, up to the next writer, that can use the
// read hold h. They have waited for another owner if waited.
func (lk *Lock) share(m *Moment, h *Hold, w *Waiter, waited bool) {
	at := m.Age()
	for next := w; w != nil && kinds[w.Kind].company == joint; w = next {
		next = w.next
		if h.shares(&w.By) {
			if waited {
				w.Waited = true
			}
			lk.deliver(m, w, h.grant(&w.By, ByHandoff, at), nil)
		}
	}
}

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
