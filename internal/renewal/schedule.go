package renewal

import (
	"container/heap"
	"time"

	"github.com/holdfast-go/holdfast/internal/validity"
)

// Item is one hold in the schedule. Embed it in the hold; the zero value is not
// scheduled.
type Item[T any] struct {
	Value T // the hold; set before it is scheduled

	ttl      time.Duration
	next     instant // when to look at it: renewal or deadline, the earlier
	deadline instant
	index    int32 // position in the heap plus one; 0: not scheduled
	renewed  bool  // false: a fixed lease, only its deadline counts
	asked    bool  // handed out or to be retried: next is the end of a pause, which is not cut short
}

// instant is a time on the monotonic clock, as the time since its schedule's epoch: a
// third of the size of a time.Time, of which every hold would have two.
type instant time.Duration

// slack is how far a renewal is brought forward to share a batch that goes out
// anyway: a quarter of the renewal period. Holds taken at any time are then renewed in
// a handful of batches per period instead of one by one, and up to a quarter too early.
func slack(ttl time.Duration) time.Duration { return ttl / 12 }

// Soon is when an item is handed out whose TTL is still a shorter one than it is to
// have: so late that what is over by then costs no renewal.
const Soon = 25 * time.Millisecond

// Plan is what becomes of an item.
type Plan struct {
	What What
	At   time.Time     // when the request was sent that has set the TTL; of End: the deadline
	Set  time.Duration // that TTL
	TTL  time.Duration // that renewals set
}

// What is a kind of plan. A plan of the first three schedules an item, or changes how it is scheduled.
type What uint8

const (
	Renew   What = iota // it is handed out after a third of its TTL, or soon if Set is less
	Fixed               // it only expires
	End                 // likewise, at a time
	Confirm             // a request has set its TTL; nothing if it is not scheduled
	Retry               // a renewal has failed in a way that may pass: soon again; nothing if it is not renewed any more
	Drop                // it is not handed out, and does not expire; a renewal of it may still be under way
)

// Schedule decides when holds are renewed and when they end. It is pure: it has the time from its owner, whose mutex guards it and
// its items.
//
//	  Renew               Confirm: deadline moves on
//	   |                  +-------------+
//	   v      due         v             |
//	waiting ---------> handed out ------+--- Retry: soon again
//	   |                  |
//	   +---- deadline ----+--> expired, once, and gone
//	   +----- Drop -------+--> gone
type Schedule[T any] struct {
	now   func() time.Time
	epoch time.Time
	items items[T]
}

// NewSchedule returns an empty schedule. The times that now returns have a monotonic reading.
func NewSchedule[T any](now func() time.Time) Schedule[T] { return Schedule[T]{now: now, epoch: now()} }

// at converts a time that has a monotonic reading.
func (s *Schedule[T]) at(t time.Time) instant { return instant(t.Sub(s.epoch)) }

// Len is how many items are scheduled.
func (s *Schedule[T]) Len() int { return len(s.items) }

// Change changes the plan of an item. It returns the deadline that the request of a Renew, Fixed or Confirm gives; none if that is of
// no use.
func (s *Schedule[T]) Change(it *Item[T], p Plan) (deadline time.Time) {
	switch p.What {
	case Renew, Fixed:
		deadline = validity.Deadline(p.At, p.Set)
		s.add(it, deadline, p)
	case End:
		s.add(it, p.At, p)
	case Confirm:
		return s.confirm(it, p)
	case Retry:
		s.retry(it)
	case Drop:
		if it.index != 0 {
			heap.Remove(&s.items, int(it.index)-1)
		}
	}
	return deadline
}

func (s *Schedule[T]) add(it *Item[T], deadline time.Time, p Plan) {
	it.renewed, it.asked = p.What == Renew, false
	it.deadline = s.at(deadline)
	it.next = it.deadline
	if p.What != End {
		it.ttl = min(p.Set, p.TTL)
	}
	switch {
	case it.renewed && p.Set < p.TTL:
		it.next = min(s.at(s.now().Add(Soon)), it.deadline)
	case it.renewed:
		it.next = min(s.at(validity.RenewAt(p.At, p.TTL)), it.deadline)
	}
	if it.index != 0 {
		heap.Fix(&s.items, int(it.index)-1)
	} else {
		heap.Push(&s.items, it)
	}
}

// confirm moves the deadline on, and never back: answers may come late and out of order.
func (s *Schedule[T]) confirm(it *Item[T], p Plan) (deadline time.Time) {
	if it.index == 0 {
		return deadline
	}
	deadline = validity.Deadline(p.At, p.Set)
	it.ttl = p.TTL
	it.deadline = max(it.deadline, s.at(deadline))
	next := it.deadline
	if it.renewed {
		next = min(s.at(validity.RenewAt(p.At, p.TTL)), next)
		if p.Set < p.TTL { // by Extend: a renewal, which sets it to more, is as due as before
			next = min(next, it.next)
		}
	}
	it.next, it.asked = next, false
	heap.Fix(&s.items, int(it.index)-1)
	return deadline
}

func (s *Schedule[T]) retry(it *Item[T]) {
	if it.index == 0 || !it.renewed {
		return
	}
	it.asked = true
	it.next = min(s.at(s.now().Add(validity.RetryAfter(it.ttl))), it.deadline)
	heap.Fix(&s.items, int(it.index)-1)
}

// Has reports whether an item is scheduled.
func (s *Schedule[T]) Has(it *Item[T]) bool { return it.index != 0 }

// Due takes out what has expired at t, and collects what is to be renewed.
func (s *Schedule[T]) Due(t time.Time) (renew, expired []T) {
	now := s.at(t)
	var out []*Item[T] // handed out now: off the heap until the end of this pass
	for len(s.items) > 0 {
		it := s.items[0]
		early := it.next
		if len(out) > 0 && it.renewed && !it.asked {
			early -= instant(slack(it.ttl))
		}
		if early > now {
			break
		}
		heap.Pop(&s.items)
		if it.deadline <= now {
			expired = append(expired, it.Value)
		} else { // renewed: of the others next is the deadline
			out = append(out, it)
			renew = append(renew, it.Value)
		}
	}
	for _, it := range out {
		it.asked = true
		it.next = min(now+instant(validity.Patience(it.ttl, 0)), it.deadline)
		heap.Push(&s.items, it)
	}
	return renew, expired
}

// Next is when to call Due again; false if nothing is scheduled.
func (s *Schedule[T]) Next() (time.Time, bool) {
	if len(s.items) == 0 {
		return time.Time{}, false
	}
	return s.epoch.Add(time.Duration(s.items[0].next)), true
}

// items is the heap: the item to look at first is at index 0.
type items[T any] []*Item[T]

func (h items[T]) Len() int           { return len(h) }
func (h items[T]) Less(i, j int) bool { return h[i].next < h[j].next }
func (h items[T]) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = int32(i+1), int32(j+1)
}

func (h *items[T]) Push(x any) {
	it := x.(*Item[T])
	*h = append(*h, it)
	it.index = int32(len(*h))
}

func (h *items[T]) Pop() any {
	old := *h
	n := len(old) - 1
	it := old[n]
	old[n] = nil
	*h = old[:n]
	it.index = 0
	return it
}
