// Package renewal renews holds and ends them: one Scheduler serves all holds of a process with one goroutine, one
// timer and one Schedule. It never waits for Redis: due items are handed out in
// batches, answers change their plans whenever they come, and a deadline passes on time whatever hangs.
package renewal

import (
	"container/heap"
	"context"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/internal/validity"
)

// Scheduler is safe for concurrent use. It starts with the first item.
type Scheduler[T any] struct {
	renew  func(batch []T)
	expire func(T)
	wake   chan struct{} // buffered: the earliest due time changed
	stop   chan struct{}
	done   chan struct{}

	mu       sync.Mutex // guards the following and all scheduled items
	schedule Schedule[T]
	looks    time.Time // when run looks next, unless it is told; zero: only then
	started  bool
	stopped  bool
}

// New returns a scheduler that does nothing until an item is added. Its goroutine calls the functions without its lock, and they
// must not block. renew asks for the renewal of a batch, which it keeps. For each item that ends in a Confirm, Retry or Drop; an item
// for which none comes is handed out again after its patience, so that a lost request cannot end a hold by itself. expire tells that
// the deadline of an item passed, which is not scheduled any more.
func New[T any](renew func(batch []T), expire func(T)) *Scheduler[T] {
	return &Scheduler[T]{
		renew:    renew,
		expire:   expire,
		wake:     make(chan struct{}, 1),
		stop:     make(chan struct{}),
		done:     make(chan struct{}),
		schedule: NewSchedule[T](time.Now),
	}
}

// Change is that of the schedule. The first item starts the goroutine.
func (s *Scheduler[T]) Change(it *Item[T], p Plan) (deadline time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	deadline = s.schedule.Change(it, p)
	next, some := s.schedule.Next()
	if some && !s.started && !s.stopped {
		s.started = true
		go s.run()
	}
	if some && (s.looks.IsZero() || next.Before(s.looks)) {
		select {
		case s.wake <- struct{}{}:
		default: // run has been told and not looked yet
		}
	}
	return deadline
}

// Has reports whether an item is scheduled. By the time that Expire is called for one, it
// can have been added again.
func (s *Scheduler[T]) Has(it *Item[T]) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.schedule.Has(it)
}

// Stop ends the goroutine and waits for it, or until ctx is done: Renew and Expire may take
// their time, or be what calls it. Items are forgotten, not expired.
func (s *Scheduler[T]) Stop(ctx context.Context) error {
	s.mu.Lock()
	first := !s.stopped
	s.stopped = true
	started := s.started
	s.mu.Unlock()
	if first {
		close(s.stop)
	}
	if !started {
		return nil
	}
	select {
	case <-s.done:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (s *Scheduler[T]) run() {
	defer close(s.done)
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		renew, expired, wait := s.due(time.Now())
		for _, v := range expired {
			s.expire(v)
		}
		if len(renew) > 0 {
			s.renew(renew)
		}
		if wait >= 0 { // else it may fire once more, in vain
			timer.Reset(wait)
		}
		select {
		case <-timer.C:
		case <-s.wake:
		case <-s.stop:
			return
		}
	}
}

// due is that of the schedule, and says how long nothing else is due; a negative wait means until told.
func (s *Scheduler[T]) due(now time.Time) (renew, expired []T, wait time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	renew, expired = s.schedule.Due(now)
	next, some := s.schedule.Next()
	s.looks = next
	if !some {
		return renew, expired, -1
	}
	return renew, expired, max(0, next.Sub(now))
}

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

// period is how long after the request that has set its TTL a hold is renewed.
func period(ttl time.Duration) time.Duration { return ttl / 3 }

// slack is how far a renewal is brought forward to share a batch that goes out
// anyway: a quarter of the period. Holds taken at any time are then renewed in
// a handful of batches per period instead of one by one, and up to a quarter too early.
func slack(ttl time.Duration) time.Duration { return ttl / 12 }

// retryAfter is the pause before a failed renewal is tried again: an eighth of the
// period, so that several tries fit before the deadline.
func retryAfter(ttl time.Duration) time.Duration {
	return min(max(ttl/24, 5*time.Millisecond), time.Second)
}

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
		it.next = min(s.at(p.At.Add(period(p.TTL))), it.deadline)
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
		next = min(s.at(p.At.Add(period(p.TTL))), next)
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
	it.next = min(s.at(s.now().Add(retryAfter(it.ttl))), it.deadline)
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
