package holdfast

import (
	"context"
	"testing"

	"github.com/holdfast-go/holdfast/internal/redistest"
)

// The patience of a place in the queue ends, and before the scheduler can tell so the lock
// has been granted: the claim is a hold now, with a deadline of its own.
func TestFound_PlaceThatEndsAsTheLockIsGranted(t *testing.T) {
	m, err := New(redistest.Start(t).Client(t))
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close(context.Background())
	l := m.FairMutex("a")
	lease, err := l.Lock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	m.expire(lease.hold) // taken off the schedule as a claim
	if err := lease.Err(); err != nil {
		t.Errorf("%v, valid for %v", err, lease.Deadline())
	}
	_ = lease.Unlock(t.Context())
}
