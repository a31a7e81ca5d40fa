package topology

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
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

// startLoad runs callers on each manager until n pairs are done, or for n = 0 until
// stopped.
func startLoad(name string, managers []*holdfast.Manager, callers, n int) *load {
	l := &load{stop: make(chan struct{}), last: time.Now()}
	for _, m := range managers {
		for range callers {
			l.callers.Go(func() {
				for (n == 0 || int(l.pairs.Load()) < n) && !l.stopped() {
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

// finish stops the callers, fails if one is stuck, and reports.
func (l *load) finish(t *testing.T, what string) {
	t.Helper()
	close(l.stop)
	l.wait(t, what)
}

// wait waits for the callers.
func (l *load) wait(t *testing.T, what string) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		l.callers.Wait()
		close(done)
	}()
	select {
	case <-done:
	case <-time.After(2 * patience):
		t.Fatalf("%s: callers are stuck", what)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	t.Logf("%s: %d pairs, %d errors, %d leases lost, %d late releases, %d overlaps, longest unavailability %v",
		what, l.pairs.Load(), len(l.errs), l.lost.Load(), l.late.Load(), l.overlaps.Load(), l.longest.Round(time.Millisecond))
}

// wantNoErrors fails for errors of Lock and Unlock.
func (l *load) wantNoErrors(t *testing.T) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, err := range l.errs {
		if i == 3 {
			t.Errorf("and %d more", len(l.errs)-i)
			break
		}
		t.Errorf("during the load: %v", err)
	}
}

// wantPrompt fails for leases that were lost and releases that were late.
func (l *load) wantPrompt(t *testing.T) {
	t.Helper()
	if l.lost.Load() > 0 || l.late.Load() > 0 {
		t.Errorf("%d leases lost, %d late releases", l.lost.Load(), l.late.Load())
	}
}

// wantExclusive fails if two callers were inside at a time.
func (l *load) wantExclusive(t *testing.T) {
	t.Helper()
	if n := l.overlaps.Load(); n > 0 {
		t.Errorf("%d overlaps where no data was lost", n)
	}
}
