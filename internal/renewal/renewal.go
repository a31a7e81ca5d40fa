// Package renewal renews holds and ends them: one Scheduler serves all holds of a process with one goroutine, one
// timer and one Schedule. It never waits for Redis: due items are handed out in
// batches, answers change their plans whenever they come, and a deadline passes on time whatever hangs.
package renewal

import (
	"context"
	"sync"
	"time"
)

// Config is what a Scheduler needs from its owner. The functions run on the
// scheduler's goroutine, without its lock, and must not block.
type Config[T any] struct {
	// Renew asks for the renewal of batch, which the callee keeps. For each item it
	// ends in a Confirm, Retry or Drop; an item for which none comes is handed out
	// again after its patience, so that a lost request cannot end a hold by itself.
	Renew func(batch []T)
	// Expire tells that the deadline of an item passed. It is not scheduled any more.
	Expire func(T)
}

// Scheduler is safe for concurrent use. It starts with the first item.
type Scheduler[T any] struct {
	cfg  Config[T]
	wake chan struct{} // buffered: the earliest due time changed
	stop chan struct{}
	done chan struct{}

	mu       sync.Mutex // guards the following and all scheduled items
	schedule Schedule[T]
	looks    time.Time // when run looks next, unless it is told; zero: only then
	started  bool
	stopped  bool
}

// New returns a scheduler that does nothing until an item is added.
func New[T any](cfg Config[T]) *Scheduler[T] {
	return &Scheduler[T]{
		cfg:      cfg,
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
			s.cfg.Expire(v)
		}
		if len(renew) > 0 {
			s.cfg.Renew(renew)
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
