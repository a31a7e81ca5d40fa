package topology

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

// A cluster's client that was closed before the manager ends what waits. One that has only dropped its connections to
// a node does not.
func TestClosed_ClusterClient(t *testing.T) {
	t.Parallel()
	c := redistest.StartCluster(t)
	client := c.Client(t)
	m := manager(t, client, holdfast.WithLease(time.Hour), holdfast.WithPollInterval(100*time.Millisecond))
	lock := func(name string) *holdfast.Lease {
		t.Helper()
		lease, err := m.Mutex(name).Lock(within(t))
		if err != nil {
			t.Fatal(err)
		}
		return lease
	}
	lease := lock("mine")
	master, err := client.MasterForKey(within(t), "mine")
	if err != nil {
		t.Fatal(err)
	}
	master.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	_, err = m.Mutex("{mine}2").Lock(ctx)
	cancel()
	if !errors.Is(err, holdfast.ErrUnavailable) || errors.Is(err, redis.ErrClosed) {
		t.Errorf("one node's connections are closed: %v", err)
	}
	held, err := manager(t, c.Client(t)).Mutex("held").Lock(within(t))
	if err != nil {
		t.Fatal(err)
	}
	failed := make(chan error, 3)
	go func() { _, err := m.Mutex("held").Lock(context.Background()); failed <- err }()
	redistest.Eventually(t, patience, "it waits", func() bool { return m.Stats().Waiting > 0 })
	client.Close()
	go func() { _, err := m.Mutex("free").Lock(context.Background()); failed <- err }()
	go func() { failed <- lease.Unlock(context.Background()) }()
	for range cap(failed) {
		select {
		case err := <-failed:
			if !errors.Is(err, holdfast.ErrUnavailable) || !errors.Is(err, redis.ErrClosed) {
				t.Error(err)
			}
		case <-time.After(patience):
			t.Fatal("one of them waits")
		}
	}
	if err := held.Unlock(within(t)); err != nil {
		t.Error(err)
	}
}
