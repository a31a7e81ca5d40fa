package lock

import (
	"time"

	"github.com/holdfast-go/holdfast/internal/wire"
)

// earlyNotices are messages of the server for claims that are not known to stand in a queue: a grant can overtake,
// on another connection, the reply that reports the place there. Replies are handled when the last one of their
// pipeline has been read, so with many locks there can be hundreds of such grants at a time. If such a message
// were dropped, the lock would be idle until the next poll.
//
// Some messages are never taken: their claims have been given up, or a request has found the grant. They are
// dropped with their generation. There are two generations, so that a message is kept for at least MaxClaim, after
// which its grant has ended.
type earlyNotices struct {
	young, old map[uint64]wire.Notice // by the number of the claim
	begun      time.Time              // young
}

// keep takes a message in; of two for a claim the later one counts, but see Notice.And.
func (e *earlyNotices) keep(n wire.Notice, now time.Time) {
	if e.young == nil || now.Sub(e.begun) > MaxClaim {
		e.young, e.old, e.begun = make(map[uint64]wire.Notice), e.young, now
	}
	if before, found := e.find(n.Number); found {
		n = n.And(before)
	}
	e.young[n.Number] = n
}

func (e *earlyNotices) find(number uint64) (wire.Notice, bool) {
	n, found := e.young[number]
	if !found {
		n, found = e.old[number]
	}
	return n, found
}

// take returns the message for a claim, and keeps it no longer; nil if there is none.
func (e *earlyNotices) take(number uint64) *wire.Notice {
	n, found := e.find(number)
	if !found {
		return nil
	}
	delete(e.young, number)
	delete(e.old, number)
	early := n // n itself would be on the heap each time
	return &early
}
