package topology

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

// load is many callers that lock and unlock one name, and what they saw.
type load struct {
	callers sync.WaitGroup
	stop    chan struct{}

	holder   atomic.Pointer[holdfast.Lease] // who is inside
	overlaps atomic.Int32                   // entered while another valid lease was inside
	pairs    atomic.Int32
	lost     atomic.Int32 // leases that ended early: told, so no error
	late     atomic.Int32 // Unlocks that could not wait for the release

	mu      sync.Mutex
	errs    []error
	last    time.Time     // latest success
	longest time.Duration // between two successes
}

// section is how long a caller stays inside: long enough to meet a fault there.
const section = time.Millisecond

// startLoad runs callers on each manager until finish.
func startLoad(name string, managers []*holdfast.Manager, callers int) *load {
	l := &load{stop: make(chan struct{}), last: time.Now()}
	for _, m := range managers {
		for range callers {
			l.callers.Go(func() {
				for !l.stopped() {
					l.pair(m.Mutex(name))
				}
			})
		}
	}
	return l
}

func (l *load) stopped() bool {
	select {
	case <-l.stop:
		return true
	default:
		return false
	}
}

// pair locks and unlocks once.
func (l *load) pair(lock holdfast.Locker) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	lease, err := lock.Lock(ctx)
	if err != nil {
		l.fail(err)
		return
	}
	if before := l.holder.Swap(lease); before != nil && before.Valid() {
		l.overlaps.Add(1)
	}
	l.succeeded()
	<-time.After(section)
	l.holder.CompareAndSwap(lease, nil)
	switch err := lease.Unlock(ctx); {
	case err == nil:
		l.pairs.Add(1)
	case errors.Is(err, holdfast.ErrLeaseLost):
		l.lost.Add(1)
	case errors.Is(err, holdfast.ErrUnavailable):
		l.late.Add(1)
	default:
		l.fail(err)
	}
}

func (l *load) succeeded() {
	now := time.Now()
	l.mu.Lock()
	l.longest = max(l.longest, now.Sub(l.last))
	l.last = now
	l.mu.Unlock()
}

func (l *load) fail(err error) {
	l.mu.Lock()
	l.errs = append(l.errs, err)
	l.mu.Unlock()
}

// goesOn waits until n more pairs are done.
func (l *load) goesOn(t *testing.T, n int32) {
	t.Helper()
	before := l.pairs.Load()
	redistest.Eventually(t, patience, "the load goes on", func() bool { return l.pairs.Load() >= before+n })
}

// finish stops the callers, fails if one is stuck or was refused, and reports into r.
func (l *load) finish(t *testing.T, r *row) {
	t.Helper()
	close(l.stop)
	done := make(chan struct{})
	go func() {
		l.callers.Wait()
		close(done)
	}()
	select {
	case <-done:
	case <-time.After(2 * patience):
		t.Fatal("callers are stuck")
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	t.Logf("%d faults: %d pairs, %d errors, %d leases lost, %d late releases, %d overlaps, longest unavailability %v",
		r.faults, l.pairs.Load(), len(l.errs), l.lost.Load(), l.late.Load(), l.overlaps.Load(), l.longest.Round(time.Millisecond))
	r.pairs += int(l.pairs.Load())
	r.overlaps += int(l.overlaps.Load())
	r.unavailable = max(r.unavailable, l.longest)
	for i, err := range l.errs {
		if i == 3 {
			t.Errorf("and %d more", len(l.errs)-i)
			break
		}
		t.Errorf("during the load: %v", err)
	}
}

// wantPrompt fails for leases that were lost, and for releases that were late although
// Redis was not away for as long as Unlock waits. It is while a graceful fail-over has to
// be repeated: the master keeps its writers waiting meanwhile.
func (l *load) wantPrompt(t *testing.T) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.lost.Load() > 0 || l.late.Load() > 0 && l.longest < time.Second {
		t.Errorf("%d leases lost, %d late releases", l.lost.Load(), l.late.Load())
	}
}
