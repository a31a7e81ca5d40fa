package holdfast

import (
	"context"
	"testing"

	"github.com/holdfast-go/holdfast/internal/redistest"
)

// The patience of a place in the queue ends, and before the scheduler comes to say so the
// lock has been granted: the claim is a hold now, with a deadline of its own.
func TestExpire_OfAPlaceWhoseLockWasGranted(t *testing.T) {
	m, err := New(redistest.Start(t).Client(t))
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close(context.Background())
	lease, err := m.FairMutex("a").Lock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	m.expire(lease.hold)
	if err := lease.Err(); err != nil {
		t.Error(err)
	}
	if err := lease.Unlock(t.Context()); err != nil {
		t.Error(err)
	}
}
