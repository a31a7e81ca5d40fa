package lock

// demand is what is known of other processes that wait for the lock.
type demand uint8

const (
	demandUnknown demand = iota
	demandAsked          // the question is under way
	demandKnown          // one waits
)

// sliceOver reports whether the process has had the lock for a slice.
func (h *Hold) sliceOver(m *Moment) bool {
	slice := m.set.Slice
	if kinds[h.Kind].joint { // they share what they do not pass on
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
	m.send(Send{Request: &q, Patience: m.askPatience()})
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

// Of is the lock.
func (q *Question) Of() *Lock { return q.Hold.lock }

func (q *Question) Replied(m *Moment, _ *Copy, r *Reply) {
	h := q.Hold
	if r.Wanted {
		h.lock.wanted(m, h, "")
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
