// Package renewal decides when holds are renewed and when they end.
//
// One Scheduler serves all holds of a process with one goroutine, one timer and
// one heap of due times. It never waits for Redis: due items are handed out in
// batches, answers come back through Confirm and Retry whenever they come, and a
// deadline passes on time whatever hangs.
//
//	  Add                 Confirm: deadline moves on
//	   |                  +-------------+
//	   v      due         v             |
//	waiting ---------> handed out ------+--- Retry: soon again
//	   |                  |
//	   +---- deadline ----+--> Expire, once, and gone
//	   +---- Remove ------+--> gone
package renewal

import (
	"container/heap"
	"context"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/internal/validity"
)

// Item is one hold in the schedule. Embed it in the hold; the zero value is not
// scheduled.
type Item[T any] struct {
	Value T // the hold; set before Add

	// Guarded by Scheduler.mu.
	ttl      time.Duration
	next     instant // when to look at it: renewal or deadline, the earlier
	deadline instant
	index    int32 // position in the heap plus one; 0: not scheduled
	renewed  bool  // false: a fixed lease, only its deadline counts
	asked    bool  // handed out or to be retried: next is the end of a pause, which is not cut short
}

// instant is a time on the monotonic clock, as the time since a scheduler's epoch: a
// third of the size of a time.Time, of which every hold would have two.
type instant time.Duration

// Config is what a Scheduler needs from its owner. The functions run on the
// scheduler's goroutine, without its lock, and must not block.
type Config[T any] struct {
	// Renew asks for the renewal of batch, which the callee keeps. For each item it
	// ends in Confirm, Retry or Remove; an item for which none comes is handed out
	// again after its patience, so that a lost request cannot end a hold by itself.
	Renew func(batch []T)
	// Expire tells that the deadline of an item passed. It has been removed.
	Expire func(T)
}

// slack is how far a renewal is brought forward to share a batch that goes out
// anyway: a quarter of the renewal period. Holds taken at any time are then renewed in
// a handful of batches per period instead of one by one, and up to a quarter too early.
func slack(ttl time.Duration) time.Duration { return ttl / 12 }

// Scheduler is safe for concurrent use. It starts with the first Add.
type Scheduler[T any] struct {
	cfg   Config[T]
	epoch time.Time
	wake  chan struct{} // buffered: the earliest due time changed
	stop  chan struct{}
	done  chan struct{}

	mu      sync.Mutex // guards the following and all scheduled items
	heap    items[T]
	waking  instant // when run will look next; never: when told
	started bool
	stopped bool
}

// New returns a scheduler that does nothing until an item is added.
func New[T any](cfg Config[T]) *Scheduler[T] {
	return &Scheduler[T]{
		cfg:    cfg,
		epoch:  time.Now(),
		wake:   make(chan struct{}, 1),
		stop:   make(chan struct{}),
		done:   make(chan struct{}),
		waking: never,
	}
}

// never is later than every instant.
const never = instant(1<<63 - 1)

// at converts a time that has a monotonic reading.
func (s *Scheduler[T]) at(t time.Time) instant { return instant(t.Sub(s.epoch)) }

// soon is when an item is handed out whose TTL is still a shorter one than it is to
// have: so late that what is over by then costs no renewal.
const soon = 25 * time.Millisecond

// Add schedules an item whose TTL in Redis was set to first by a request sent at sent,
// and is set to ttl by its renewals. A renewed item is handed out after a third of its
// TTL, or soon if first is less; another only expires. One that is scheduled already is from
// now on scheduled like that. The first Add starts the goroutine. It reports the item's deadline.
func (s *Scheduler[T]) Add(it *Item[T], sent time.Time, first, ttl time.Duration, renewed bool) time.Time {
	deadline := validity.Deadline(sent, first)
	s.mu.Lock()
	it.ttl, it.renewed = min(first, ttl), renewed
	it.deadline = s.at(deadline)
	it.next = it.deadline
	switch {
	case renewed && first < ttl:
		it.next = min(s.at(time.Now().Add(soon)), it.deadline)
	case renewed:
		it.next = min(s.at(validity.RenewAt(sent, ttl)), it.deadline)
	}
	sooner := s.addLocked(it)
	s.mu.Unlock()
	s.notify(sooner)
	return deadline
}

// AddEnd schedules an item that is not renewed, and expires at deadline. It is like Add for the rest.
func (s *Scheduler[T]) AddEnd(it *Item[T], deadline time.Time) {
	s.mu.Lock()
	it.renewed = false
	it.deadline = s.at(deadline)
	it.next = it.deadline
	sooner := s.addLocked(it)
	s.mu.Unlock()
	s.notify(sooner)
}

// addLocked puts an item where it belongs in the schedule. It reports whether run must be told.
func (s *Scheduler[T]) addLocked(it *Item[T]) (sooner bool) {
	it.asked = false
	switch {
	case s.stopped:
	case it.index != 0:
		heap.Fix(&s.heap, int(it.index)-1)
	default:
		heap.Push(&s.heap, it)
		if !s.started {
			s.started = true
			go s.run()
		}
	}
	return s.soonerLocked(it)
}

// Confirm records that a request sent at sent set the item's TTL to set, and that the
// next renewals will set it to ttl. Answers may come late and out of order: a deadline
// only ever moves on. It reports the deadline that this request gives, and false if the
// item is not scheduled any more.
func (s *Scheduler[T]) Confirm(it *Item[T], sent time.Time, set, ttl time.Duration) (time.Time, bool) {
	deadline := validity.Deadline(sent, set)
	s.mu.Lock()
	if it.index == 0 {
		s.mu.Unlock()
		return time.Time{}, false
	}
	it.ttl = ttl
	it.deadline = max(it.deadline, s.at(deadline))
	next := s.lookAt(it, sent)
	if it.renewed && set < ttl { // by Extend: a renewal, which sets it to more, is as due as before
		next = min(next, it.next)
	}
	it.next, it.asked = next, false
	heap.Fix(&s.heap, int(it.index)-1)
	sooner := s.soonerLocked(it)
	s.mu.Unlock()
	s.notify(sooner)
	return deadline, true
}

// lookAt is when to look at an item that was confirmed by a request sent at sent.
func (s *Scheduler[T]) lookAt(it *Item[T], sent time.Time) instant {
	if !it.renewed {
		return it.deadline
	}
	return min(s.at(validity.RenewAt(sent, it.ttl)), it.deadline)
}

// Retry records that a renewal failed in a way that may pass. It changes nothing for an
// item that is not renewed any more.
func (s *Scheduler[T]) Retry(it *Item[T]) {
	s.mu.Lock()
	if it.index == 0 || !it.renewed {
		s.mu.Unlock()
		return
	}
	it.asked = true
	it.next = min(s.at(time.Now().Add(validity.RetryAfter(it.ttl))), it.deadline)
	heap.Fix(&s.heap, int(it.index)-1)
	sooner := s.soonerLocked(it)
	s.mu.Unlock()
	s.notify(sooner)
}

// Remove takes an item out. It will not be handed out and not expire; a renewal of
// it may still be under way.
func (s *Scheduler[T]) Remove(it *Item[T]) {
	s.mu.Lock()
	if it.index != 0 {
		heap.Remove(&s.heap, int(it.index)-1)
	}
	s.mu.Unlock()
}

// Has reports whether an item is scheduled. By the time that Expire is called for one, it
// can have been added again.
func (s *Scheduler[T]) Has(it *Item[T]) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return it.index != 0
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

// soonerLocked reports whether run must be told of it because it would look too
// late otherwise.
func (s *Scheduler[T]) soonerLocked(it *Item[T]) bool {
	return it.index != 0 && it.next < s.waking
}

func (s *Scheduler[T]) notify(sooner bool) {
	if !sooner {
		return
	}
	select {
	case s.wake <- struct{}{}:
	default: // run has been told and not looked yet
	}
}

func (s *Scheduler[T]) run() {
	defer close(s.done)
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		renew, expired, wait := s.due(time.Now())
		for _, v := range expired {
			s.cfg.Expire(v)
		}
		if len(renew) > 0 {
			s.cfg.Renew(renew)
		}
		var fires <-chan time.Time
		if wait >= 0 {
			timer.Reset(wait)
			fires = timer.C
		}
		select {
		case <-fires:
		case <-s.wake:
		case <-s.stop:
			return
		}
	}
}

// due takes out what has expired, collects what is to be renewed, and says how
// long nothing else is due; a negative wait means until told.
func (s *Scheduler[T]) due(t time.Time) (renew, expired []T, wait time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.at(t)
	var out []*Item[T] // handed out now: off the heap until the end of this pass
	for len(s.heap) > 0 {
		it := s.heap[0]
		early := it.next
		if len(out) > 0 && it.renewed && !it.asked {
			early -= instant(slack(it.ttl))
		}
		if early > now {
			break
		}
		switch {
		case it.deadline <= now:
			heap.Pop(&s.heap)
			expired = append(expired, it.Value)
		default: // renewed: of the others next is the deadline
			heap.Pop(&s.heap)
			out = append(out, it)
			renew = append(renew, it.Value)
		}
	}
	for _, it := range out {
		it.asked = true
		it.next = min(now+instant(validity.Patience(it.ttl, 0)), it.deadline)
		heap.Push(&s.heap, it)
	}
	if len(s.heap) == 0 {
		s.waking = never
		return renew, expired, -1
	}
	s.waking = s.heap[0].next
	return renew, expired, time.Duration(max(0, s.waking-now))
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
