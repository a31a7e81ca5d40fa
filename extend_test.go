package holdfast

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/redistest"
)

// via returns a manager behind a proxy of its own, and its server.
func via(t *testing.T) (*Manager, *redistest.Proxy, *redistest.Server) {
	t.Helper()
	srv := redistest.Start(t)
	p := srv.Proxy(t)
	m, err := New(p.Client(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = m.Close(context.Background()) })
	return m, p, srv
}

// giveBack unlocks l. It asks again where the machine stood still for longer than Unlock waits for an answer.
func giveBack(l *Lease) error {
	for end := time.Now().Add(15 * time.Second); ; {
		err := l.Unlock(context.Background())
		if !errors.Is(err, ErrUnavailable) || time.Now().After(end) {
			return err
		}
	}
}

// heldFor returns a manager behind a proxy and a lease of "a".
func heldFor(t *testing.T, opt LockOption) (*Manager, *redistest.Proxy, *redistest.Server, *Lease) {
	t.Helper()
	m, p, srv := via(t)
	lease, err := m.Mutex("a", opt).Lock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return m, p, srv, lease
}

// Redis still has the lock for the length of the margin, but the end has been reached and only not been handled.
func TestExtend_AfterTheEndIsTheLoss(t *testing.T) {
	t.Parallel()
	m, _, _, lease := heldFor(t, WithFixedLease(time.Minute))
	lease.inner().Inside().SetEnd(time.Now().Add(-time.Millisecond)) // the schedule is about to say so
	if err := lease.Extend(t.Context(), time.Hour); !errors.Is(err, ErrLeaseLost) {
		t.Errorf("%v, want ErrLeaseLost", err)
	}
	lease.inner().Inside().Expire()
	if lost := m.Stats().Lost; lost != 1 {
		t.Errorf("lost %d times", lost)
	}
}
