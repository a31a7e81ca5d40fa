package lock

// demand is what is known of other processes that wait for the lock.
type demand uint8

const (
	demandUnknown demand = iota
	demandAsked          // the question is under way
	demanded             // one waits
)

// sliceOver reports whether the process has had the lock for a slice.
func (h *Hold) sliceOver(m *Moment) bool {
	slice := m.set.Slice
	if kinds[h.Kind].company == joint { // they share what they do not pass on
		slice = m.set.ReadSlice
	}
	return m.Age()-h.tenure >= slice
}

// askDemand finds out, once per slice, whether another process waits for a lock that this one passes among
// its callers. Messages would be sooner, but Go can read them tens of milliseconds late while its goroutines are
// busy. One question per slice costs nothing in comparison with the grants in between.
func (lk *Lock) askDemand(m *Moment, h *Hold) {
	if h.demand != demandUnknown || !h.sliceOver(m) {
		return
	}
	lk.ask(m, h)
}

// ask sends the question.
func (lk *Lock) ask(m *Moment, h *Hold) { lk.askWith(m, h, Question{}) }

// askWith sends it with what else it is to do.
func (lk *Lock) askWith(m *Moment, h *Hold, q Question) {
	h.demand = demandAsked
	q.Hold = h
	m.send(lk, Send{Request: &q, Patience: m.askPatience()})
}

// Unproven is the event that the process does not know whether messages arrive: those of the lock's channel, or of its inbox.
func (lk *Lock) Unproven(m *Moment, own bool) {
	holds := lk.Holds()
	if w := lk.waiters.head; w != nil && lk.bidOf(w) != nil {
		holds = []*Hold{lk.bidOf(w).claim}
	}
	if len(holds) > 0 {
		lk.askWith(m, holds[0], Question{Echo: echoTo(own)})
	}
}

// Echo is a message that the process sends itself, to see whether it arrives.
type Echo uint8

const (
	NoEcho    Echo = iota
	EchoInbox      // to its inbox
	EchoOwn        // to the lock's own channel, if that is sharded; else to the inbox
)

func echoTo(own bool) Echo {
	if own {
		return EchoOwn
	}
	return EchoInbox
}

// Question is that question.
type Question struct {
	Hold *Hold
	Echo Echo

	// Of the shell.
	Channel, Message string // of the echo; empty: there is none
}

func (q *Question) Replied(m *Moment, _ *Copy, r *Reply) {
	h := q.Hold
	if r.Wanted {
		h.Lock.wanted(m, h, "")
		for _, other := range h.Lock.Holds() {
			other.tellWanted(m)
		}
	} else if h.demand == demandAsked { // and no message has told of one meanwhile
		h.demand = demandUnknown
		h.tenure = m.Age() // the next slice
	}
}

// Overdue has the question asked again, over another connection: this one may be dead.
func (q *Question) Overdue(m *Moment, c *Copy) { q.Stranded(m, c) }

func (q *Question) Stranded(*Moment, *Copy) {
	if q.Hold.demand == demandAsked {
		q.Hold.demand = demandUnknown
	}
}

// watch is whether a caller waits to know that another owner wants the lock, since the caller has it (Lease.Wanted).
type watch uint8

const (
	unwatched watch = iota
	watched
	toldWanted // one does, and the caller knows
)

// A caller here that waits is known at once. For those of other processes, the process asks Redis once a second. With WithWanted a
// waiter's request sends a message as well, as to a holder that may linger; that of a TryLock does not, so it costs no more.

// Watch is the event that the caller of l wants to know when another owner wants the lock: then l is among Effects.Wanted. It reports
// whether the caller waits for that.
func (lk *Lock) Watch(m *Moment, l *Lease) (waits bool) {
	h := l.hold
	switch {
	case l.ended != nil || h.watch == watched:
	case h.watch == toldWanted:
		m.effects().Wanted = append(m.effects().Wanted, l)
	default:
		h.watch = watched
		for w := lk.waiters.head; w != nil; w = w.next {
			lk.tellWatched(m, w)
		}
		if h.watch == watched && (!h.Terms.hears() || m.knows().Inbox == InboxDenied || h.demand == demanded) {
			lk.inquire(m, h) // what is known may be of before the caller had it
		}
	}
	return l.ended == nil && h.watch == watched
}

// Look is the event that a second has passed since Watch or the last Look. It reports whether a caller still waits.
func (lk *Lock) Look(m *Moment) (waits bool) {
	for _, h := range lk.Holds() {
		if h.watch == watched && !waits {
			waits = true
			lk.inquire(m, h)
		}
	}
	return waits
}

// inquire asks, and forgets nothing meanwhile.
func (lk *Lock) inquire(m *Moment, h *Hold) {
	before := h.demand
	if before != demandAsked {
		lk.ask(m, h)
	}
	if before == demanded {
		h.demand = before
	}
}

// tellWanted is called when another owner wants the lock.
func (h *Hold) tellWanted(m *Moment) {
	if h.watch == watched {
		for l := h.leases; l != nil; l = l.next {
			m.effects().Wanted = append(m.effects().Wanted, l)
		}
	}
	if h.leases != nil {
		h.watch = toldWanted
	}
}
