package topology

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/locktest"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

// A cluster's client that has only dropped its connections to a node is not taken for closed.
func TestClosed_OneNode(t *testing.T) {
	t.Parallel()
	c := redistest.StartCluster(t)
	client := c.Client(t)
	m := manager(t, client, holdfast.WithLease(time.Hour), holdfast.WithPollInterval(100*time.Millisecond))
	locktest.MustUnlock(t, locktest.MustLock(t, m.Mutex("mine")))
	master, err := client.MasterForKey(within(t), "mine")
	redistest.Must(t, err)
	master.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	_, err = m.Mutex("{mine}2").Lock(ctx)
	cancel()
	if !errors.Is(err, holdfast.ErrUnavailable) || errors.Is(err, redis.ErrClosed) {
		t.Errorf("one node's connections are closed: %v", err)
	}
}

// Each call on a client that was closed before its manager ends, and what waited does: over a cluster's client as over
// one of Sentinel's.
func TestClosed_EachCall(t *testing.T) {
	for name, start := range map[string]func(t *testing.T) (client, other redis.UniversalClient){
		"cluster": func(t *testing.T) (client, other redis.UniversalClient) {
			c := redistest.StartCluster(t)
			return c.Client(t), c.Client(t)
		},
		"Sentinel": func(t *testing.T) (client, other redis.UniversalClient) {
			s := redistest.StartSentinel(t, 1)
			return s.Client(t), s.Client(t)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			client, other := start(t)
			m := manager(t, client, holdfast.WithLease(time.Hour))
			holder := manager(t, other, holdfast.WithLease(time.Hour))
			locks := map[string]func(m *holdfast.Manager) holdfast.Locker{
				"mutex":      func(m *holdfast.Manager) holdfast.Locker { return m.Mutex("a") },
				"fair":       func(m *holdfast.Manager) holdfast.Locker { return m.FairMutex("b") },
				"write side": func(m *holdfast.Manager) holdfast.Locker { return m.RWMutex("c") },
				"read side":  func(m *holdfast.Manager) holdfast.Locker { return m.RWMutex("d").RLocker() },
				"several":    func(m *holdfast.Manager) holdfast.Locker { return multi(t, m, "e", "f") },
			}
			calls := make(map[string]<-chan error)
			call := func(what string, f func() error) { calls[what] = redistest.Begin(f) }
			taken := func(l holdfast.Locker) func() error {
				return func() error { _, err := l.Lock(context.Background()); return err }
			}
			held := make(map[string]*holdfast.Lease)
			for what, of := range locks {
				if what == "read side" { // readers wait for a writer
					held[what] = locktest.MustLock(t, holder.RWMutex("d"))
				} else {
					held[what] = locktest.MustLock(t, of(holder))
				}
				call("a waiter for "+what, taken(of(m)))
			}
			given, kept := locktest.MustLock(t, m.Mutex("given")), locktest.MustLock(t, m.Mutex("kept"))
			redistest.Eventually(t, patience, "they wait", func() bool { return m.Stats().Waiting >= len(locks) })
			_ = client.Close()
			for what, of := range locks {
				call("Lock of "+what, taken(of(m)))
				call("TryLock of "+what, func() error { _, err := of(m).TryLock(context.Background()); return err })
			}
			call("Unlock", func() error { return given.Unlock(context.Background()) })
			call("Extend", func() error { return kept.Extend(context.Background(), time.Hour) })
			call("Inspect", func() error { _, err := m.Inspect(context.Background(), "a"); return err })
			call("ForceUnlock", func() error { _, err := m.ForceUnlock(context.Background(), "a"); return err })
			for what, c := range calls {
				locktest.EndsClosed(t, what, func() error { return <-c })
			}
			closed := redistest.Begin(func() error { return m.Close(context.Background()) })
			redistest.Next(t, closed, "Close waits")
			for _, l := range held {
				locktest.MustUnlock(t, l)
			}
		})
	}
}
