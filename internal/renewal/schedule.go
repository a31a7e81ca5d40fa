package renewal

import (
	"container/heap"
	"time"

	"github.com/holdfast-go/holdfast/internal/validity"
)

// Item is one hold in the schedule. Embed it in the hold; the zero value is not
// scheduled.
type Item[T any] struct {
	Value T // the hold; set before Add

	ttl      time.Duration
	next     instant // when to look at it: renewal or deadline, the earlier
	deadline instant
	index    int32 // position in the heap plus one; 0: not scheduled
	renewed  bool  // false: a fixed lease, only its deadline counts
	asked    bool  // handed out or to be retried: next is the end of a pause, which is not cut short
}

// instant is a time on the monotonic clock, as the time since a heap's epoch: a
// third of the size of a time.Time, of which every hold would have two.
type instant time.Duration

// slack is how far a renewal is brought forward to share a batch that goes out
// anyway: a quarter of the renewal period. Holds taken at any time are then renewed in
// a handful of batches per period instead of one by one, and up to a quarter too early.
func slack(ttl time.Duration) time.Duration { return ttl / 12 }

// Soon is when an item is handed out whose TTL is still a shorter one than it is to
// have: so late that what is over by then costs no renewal.
const Soon = 25 * time.Millisecond

// Heap is a schedule: it decides when holds are renewed and when they end. It is pure: each call takes the time that it needs. A Heap and
// its items are guarded by the mutex of its owner.
//
//	  Add                 Confirm: deadline moves on
//	   |                  +-------------+
//	   v      due         v             |
//	waiting ---------> handed out ------+--- Retry: soon again
//	   |                  |
//	   +---- deadline ----+--> expired, once, and gone
//	   +---- Remove ------+--> gone
type Heap[T any] struct {
	epoch time.Time
	items items[T]
}

// NewHeap returns an empty heap. Its times are counted from epoch, which has a monotonic reading.
func NewHeap[T any](epoch time.Time) Heap[T] { return Heap[T]{epoch: epoch} }

// at converts a time that has a monotonic reading.
func (s *Heap[T]) at(t time.Time) instant { return instant(t.Sub(s.epoch)) }

// Len is how many items are scheduled.
func (s *Heap[T]) Len() int { return len(s.items) }

// Add schedules an item at now whose TTL in Redis was set to first by a request sent at sent,
// and is set to ttl by its renewals. A renewed item is handed out after a third of its
// TTL, or soon if first is less; another only expires. One that is scheduled already is from
// now on scheduled like that. It reports the item's deadline.
func (s *Heap[T]) Add(it *Item[T], now func() time.Time, sent time.Time, first, ttl time.Duration, renewed bool) time.Time {
	deadline := validity.Deadline(sent, first)
	it.ttl, it.renewed = min(first, ttl), renewed
	it.deadline = s.at(deadline)
	it.next = it.deadline
	switch {
	case renewed && first < ttl:
		it.next = min(s.at(now().Add(Soon)), it.deadline)
	case renewed:
		it.next = min(s.at(validity.RenewAt(sent, ttl)), it.deadline)
	}
	s.put(it)
	return deadline
}

// AddEnd schedules an item that is not renewed, and expires at deadline. It is like Add for the rest.
func (s *Heap[T]) AddEnd(it *Item[T], deadline time.Time) {
	it.renewed = false
	it.deadline = s.at(deadline)
	it.next = it.deadline
	s.put(it)
}

// put puts an item where it belongs in the schedule.
func (s *Heap[T]) put(it *Item[T]) {
	it.asked = false
	if it.index != 0 {
		heap.Fix(&s.items, int(it.index)-1)
	} else {
		heap.Push(&s.items, it)
	}
}

// Confirm records that a request sent at sent set the item's TTL to set, and that the
// next renewals will set it to ttl. Answers may come late and out of order: a deadline
// only ever moves on. It reports the deadline that this request gives, and false if the
// item is not scheduled any more.
func (s *Heap[T]) Confirm(it *Item[T], sent time.Time, set, ttl time.Duration) (time.Time, bool) {
	if it.index == 0 {
		return time.Time{}, false
	}
	deadline := validity.Deadline(sent, set)
	it.ttl = ttl
	it.deadline = max(it.deadline, s.at(deadline))
	next := s.lookAt(it, sent)
	if it.renewed && set < ttl { // by Extend: a renewal, which sets it to more, is as due as before
		next = min(next, it.next)
	}
	it.next, it.asked = next, false
	heap.Fix(&s.items, int(it.index)-1)
	return deadline, true
}

// lookAt is when to look at an item that was confirmed by a request sent at sent.
func (s *Heap[T]) lookAt(it *Item[T], sent time.Time) instant {
	if !it.renewed {
		return it.deadline
	}
	return min(s.at(validity.RenewAt(sent, it.ttl)), it.deadline)
}

// Retry records at now that a renewal failed in a way that may pass. It changes nothing for an
// item that is not renewed any more, and reports whether it did.
func (s *Heap[T]) Retry(it *Item[T], now func() time.Time) bool {
	if it.index == 0 || !it.renewed {
		return false
	}
	it.asked = true
	it.next = min(s.at(now().Add(validity.RetryAfter(it.ttl))), it.deadline)
	heap.Fix(&s.items, int(it.index)-1)
	return true
}

// Remove takes an item out. It will not be handed out and not expire; a renewal of
// it may still be under way.
func (s *Heap[T]) Remove(it *Item[T]) {
	if it.index != 0 {
		heap.Remove(&s.items, int(it.index)-1)
	}
}

// Has reports whether an item is scheduled.
func (s *Heap[T]) Has(it *Item[T]) bool { return it.index != 0 }

// IsDueBefore reports whether an item is to be looked at before a time.
func (s *Heap[T]) IsDueBefore(it *Item[T], at time.Time) bool {
	return it.index != 0 && it.next < s.at(at)
}

// Due takes out what has expired at t, and collects what is to be renewed.
func (s *Heap[T]) Due(t time.Time) (renew, expired []T) {
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
		switch {
		case it.deadline <= now:
			heap.Pop(&s.items)
			expired = append(expired, it.Value)
		default: // renewed: of the others next is the deadline
			heap.Pop(&s.items)
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
func (s *Heap[T]) Next() (time.Time, bool) {
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
