package semaphore

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/locktest"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

// The semaphore of the tests, and the keys that it has in Redis.
const (
	name  = "downloads"
	held  = "{downloads}:timeout"
	queue = "holdfast_permit_queue:{downloads}"
)

// user is the semaphore of a manager of its own.
func user(t *testing.T, srv *redistest.Server, permits int, opts ...holdfast.Option) *holdfast.Semaphore {
	return locktest.ManagerOn(t, srv, opts...).Semaphore(name, permits)
}

func acquire(t *testing.T, s *holdfast.Semaphore, n int) *holdfast.Lease {
	t.Helper()
	l, err := s.Acquire(t.Context(), n)
	redistest.Must(t, err)
	if l.Permits() != n {
		t.Fatalf("the lease has %d permits, want %d", l.Permits(), n)
	}
	return l
}

func unlock(t *testing.T, leases ...*holdfast.Lease) {
	t.Helper()
	for _, l := range leases {
		redistest.Must(t, l.Unlock(t.Context()))
	}
}

// refused fails unless n permits are not to be had at once.
func refused(t *testing.T, s *holdfast.Semaphore, n int) {
	t.Helper()
	if l, err := s.TryAcquire(t.Context(), n); !errors.Is(err, holdfast.ErrNotAcquired) {
		t.Fatalf("TryAcquire of %d: %v, %v", n, l, err)
	}
}

// waiting begins an Acquire, which waits in its process or in the queue.
func waiting(t *testing.T, m *holdfast.Manager, s *holdfast.Semaphore, n int) <-chan holdfast.Result {
	t.Helper()
	before := m.Stats().Waiting
	result := s.AcquireAsync(t.Context(), n)
	redistest.Eventually(t, locktest.Patience, "the caller waits", func() bool { return m.Stats().Waiting == before+1 })
	return result
}

var granted = locktest.Granted

// told is granted for a caller that is told, since it asks too late.
func told(t *testing.T, r <-chan holdfast.Result) *holdfast.Lease {
	t.Helper()
	began := time.Now()
	l := granted(t, r)
	redistest.WantMost(t, time.Since(began), locktest.Patience, "it waited for %v")
	return l
}

// stands waits until so many processes stand in the queue in Redis.
func stands(t *testing.T, srv *redistest.Server, n int64) {
	t.Helper()
	redistest.Eventually(t, locktest.Patience, "the place in the queue", func() bool { return srv.Admin().LLen(t.Context(), queue).Val() == n })
}

// wantState fails unless Redis knows so many permits, and so many that no one holds, and P3: together they are what there is.
func wantState(t *testing.T, srv *redistest.Server, permits, available int) {
	t.Helper()
	m := locktest.ManagerOn(t, srv)
	defer m.Close(context.Background())
	info, err := m.Inspect(t.Context(), name)
	if err != nil || info.Kind != holdfast.KindSemaphore || info.Permits != permits || info.Available != available || len(info.Holders)+info.Ended != permits-available {
		t.Fatalf("Redis knows %+v, %v, want %d permits, %d available", info, err, permits, available)
	}
}
