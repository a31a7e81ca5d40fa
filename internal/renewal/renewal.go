// Package renewal renews holds and ends them: one Scheduler serves all holds of a process with one goroutine, one
// timer and one heap of due times. It never waits for Redis: due items are handed out in
// batches, answers come back through Confirm and Retry whenever they come, and a
// deadline passes on time whatever hangs.
package renewal

import (
	"context"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/internal/validity"
)

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

// Scheduler is safe for concurrent use. It starts with the first Add.
type Scheduler[T any] struct {
	cfg  Config[T]
	wake chan struct{} // buffered: the earliest due time changed
	stop chan struct{}
	done chan struct{}

	mu      sync.Mutex // guards the following and all scheduled items
	heap    Heap[T]
	waking  time.Time // when run will look next; if it will look only when told, asleep
	asleep  bool
	started bool
	stopped bool
}

// New returns a scheduler that does nothing until an item is added.
func New[T any](cfg Config[T]) *Scheduler[T] {
	return &Scheduler[T]{
		cfg:    cfg,
		wake:   make(chan struct{}, 1),
		stop:   make(chan struct{}),
		done:   make(chan struct{}),
		heap:   NewHeap[T](time.Now()),
		asleep: true,
	}
}

// Add is that of the heap. The first Add starts the goroutine.
func (s *Scheduler[T]) Add(it *Item[T], sent time.Time, first, ttl time.Duration, renewed bool) time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped {
		return validity.Deadline(sent, first)
	}
	deadline := s.heap.Add(it, time.Now, sent, first, ttl, renewed)
	s.wakeLocked(it)
	s.startLocked()
	return deadline
}

// AddEnd is that of the heap, and like Add for the rest.
func (s *Scheduler[T]) AddEnd(it *Item[T], deadline time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped {
		return
	}
	s.heap.AddEnd(it, deadline)
	s.wakeLocked(it)
	s.startLocked()
}

func (s *Scheduler[T]) startLocked() {
	if !s.started {
		s.started = true
		go s.run()
	}
}

// Confirm is that of the heap.
func (s *Scheduler[T]) Confirm(it *Item[T], sent time.Time, set, ttl time.Duration) (time.Time, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	deadline, ok := s.heap.Confirm(it, sent, set, ttl)
	s.wakeLocked(it)
	return deadline, ok
}

// Retry is that of the heap.
func (s *Scheduler[T]) Retry(it *Item[T]) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.heap.Retry(it, time.Now) {
		s.wakeLocked(it)
	}
}

// Remove is that of the heap.
func (s *Scheduler[T]) Remove(it *Item[T]) {
	s.mu.Lock()
	s.heap.Remove(it)
	s.mu.Unlock()
}

// Has reports whether an item is scheduled. By the time that Expire is called for one, it
// can have been added again.
func (s *Scheduler[T]) Has(it *Item[T]) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.heap.Has(it)
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

// wakeLocked has run look again if it would look too late for an item otherwise.
func (s *Scheduler[T]) wakeLocked(it *Item[T]) {
	if s.asleep && !s.heap.Has(it) || !s.asleep && !s.heap.IsDueBefore(it, s.waking) {
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

// due is that of the heap, and says how long nothing else is due; a negative wait means until told.
func (s *Scheduler[T]) due(now time.Time) (renew, expired []T, wait time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	renew, expired = s.heap.Due(now)
	next, some := s.heap.Next()
	s.waking, s.asleep = next, !some
	if !some {
		return renew, expired, -1
	}
	return renew, expired, max(0, next.Sub(now))
}
