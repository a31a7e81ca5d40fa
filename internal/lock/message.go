package lock

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast/internal/wire"
)

// Expected are the claims of a process that wait for messages, its holds that may linger, of which others can say that they want
// them, and the messages that came before. The zero value is empty.
type Expected struct {
	claims map[uint64]*Hold // claims that stand in a queue, and holds that may linger, by their number
	early  earlyNotices
}

// IsEmpty reports whether no claim waits.
func (e *Expected) IsEmpty() bool { return len(e.claims) == 0 }

// Add has a claim that stands in a queue wait, or a hold that may linger. It returns the message that has come for it already; nil if there is none.
func (e *Expected) Add(h *Hold) *wire.Notice {
	if e.claims == nil {
		e.claims = make(map[uint64]*Hold)
	}
	e.claims[h.Number] = h
	return e.early.take(h.Number)
}

// Drop reports whether the claim has waited, which it does no longer.
func (e *Expected) Drop(h *Hold) bool {
	_, waited := e.claims[h.Number] // or it stood in the queue, but its waiter left before the answer came
	delete(e.claims, h.Number)
	return waited
}

// ClaimOf returns the claim that n is for; if none is known to wait, n is kept for a while.
func (e *Expected) ClaimOf(n wire.Notice, now time.Time) *Hold {
	h := e.claims[n.Number]
	if h == nil {
		e.early.keep(n, now)
	}
	return h
}

// Locks returns the locks that claims wait for, in the order of the claims.
func (e *Expected) Locks() (all []*Lock) {
	claims := slices.SortedFunc(maps.Values(e.claims), func(a, b *Hold) int { return cmp.Compare(a.Number, b.Number) })
	known := make(map[*Lock]bool, len(claims))
	for _, h := range claims {
		if !known[h.Lock] {
			known[h.Lock] = true
			all = append(all, h.Lock)
		}
	}
	return all
}

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
