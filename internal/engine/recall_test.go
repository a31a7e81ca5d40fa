package engine_test

import (
	"context"
	"errors"
	"testing"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/locktest"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

// A handle recalls the entry that it has left, unless another handle has made one since: both would take the lock for
// callers of this process then, and send requests for each other's.
func TestRecall_FindsTheEntryOfAnotherHandle(t *testing.T) {
	t.Parallel()
	m, err := holdfast.New(redistest.Start(t).Client(t))
	redistest.Must(t, err)
	defer m.Close(context.Background())
	first, second := m.Mutex("x"), m.Mutex("x")
	for range 3 { // the second time an entry is recalled
		locktest.MustUnlock(t, locktest.MustLock(t, first))
		locktest.MustUnlock(t, locktest.MustLock(t, second))
	}
	held := locktest.MustLock(t, second)
	before := m.Stats()
	if _, err := first.TryLock(t.Context()); !errors.Is(err, holdfast.ErrNotAcquired) {
		t.Errorf("TryLock while another handle holds it: %v", err)
	}
	if s := m.Stats(); s.Commands != before.Commands || s.Locks != 1 {
		t.Errorf("%d commands for a lock that this process holds; %d locks in use", s.Commands-before.Commands, s.Locks)
	}
	locktest.MustUnlock(t, held)
	redistest.Must(t, m.Close(context.Background()))
	if _, err := first.Lock(t.Context()); !errors.Is(err, holdfast.ErrClosed) {
		t.Errorf("Lock after Close: %v", err)
	}
}
