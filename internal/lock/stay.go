package lock

import "time"

// A lock that is held at least for a time stays taken in Redis when its caller gives it up earlier. Another owner
// id takes the place of the hold's, with a TTL of the rest. No process has or renews that one, so Redis alone ends
// it, whatever becomes of the process. The requests of waiters find that TTL, as that of any other owner, and are
// sent again when it is over. The next waiter in the queue, which may know of a longer TTL, gets a message, and
// so does the one behind it if that one leaves.
//
// Rejected alternative: the TTL of the hold itself is changed. A renewal that is under way at that moment would set it to
// the lease again, and a late copy of the acquire too.

// stay is for how long a hold that is given up at now stays taken; 0: it does not.
func (h *Hold) stay(m *Moment, now time.Time) time.Duration {
	if !h.stays || h.Terms.AtLeast == 0 {
		return 0
	}
	rest := h.Terms.AtLeast - (m.ageOf(now) - h.tenure) // it is never passed on, so that is since its grant
	if rest < time.Millisecond {
		return 0
	}
	return rest
}
