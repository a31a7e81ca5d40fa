package holdfast_test

import (
	"context"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

// managerOn returns a manager on srv that is closed with the test.
func managerOn(t *testing.T, srv *redistest.Server, opts ...holdfast.Option) *holdfast.Manager {
	t.Helper()
	m, err := holdfast.New(srv.Client(t), opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = m.Close(context.Background()) })
	return m
}

func mustLock(t *testing.T, l holdfast.Locker) *holdfast.Lease {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	lease, err := l.Lock(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return lease
}

func mustUnlock(t *testing.T, l *holdfast.Lease) {
	t.Helper()
	if err := l.Unlock(context.Background()); err != nil {
		t.Fatal(err)
	}
}

// eventually waits for a state that has no event of its own.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	const patience = 10 * time.Second
	for end := time.Now().Add(patience); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not within %v: %s", patience, what)
		}
	}
}
