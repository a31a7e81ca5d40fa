package holdfast_test

import (
	"context"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

// managerOf returns a manager on a client that the test closes, and that client.
func managerOf(t *testing.T, srv *redistest.Server, opts ...holdfast.Option) (*holdfast.Manager, *redis.Client) {
	t.Helper()
	client := srv.Client(t)
	m, err := holdfast.New(client, opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = m.Close(context.Background()) })
	return m, client
}

// ends fails unless a call ends soon, and because the client is closed.
func ends(t *testing.T, what string, call func() error) {
	t.Helper()
	failed := make(chan error, 1)
	go func() { failed <- call() }()
	select {
	case err := <-failed:
		wantErr(t, err, holdfast.ErrUnavailable, nil)
		wantErr(t, err, redis.ErrClosed, holdfast.ErrNotAcquired)
	case <-time.After(patience):
		t.Errorf("%s waits", what)
	}
}

// A client that was closed before its manager ends what is taken together as well.
func TestClosed_SeveralLocks(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	m, client := managerOf(t, srv, holdfast.WithLease(time.Hour))
	several, err := holdfast.NewMulti(m.Mutex("a"), m.RWMutex("b").RLocker(), m.FairMutex("c"))
	if err != nil {
		t.Fatal(err)
	}
	lease := mustLock(t, several)
	write, read := bothSides(t, m.RWMutex("rw"))
	waiter := m.RWMutex("rw").LockAsync(t.Context()) // behind a lease that is valid
	client.Close()
	ends(t, "Unlock", func() error { return lease.Unlock(context.Background()) })
	ends(t, "one that waited before", func() error { return (<-waiter).Err })
	ends(t, "Unlock again", func() error { return lease.Unlock(context.Background()) })
	ends(t, "Lock", func() error { _, err := several.Lock(context.Background()); return err })
	ends(t, "TryLock", func() error { _, err := several.TryLock(context.Background()); return err })
	ends(t, "RLock", func() error { _, err := m.RWMutex("rw").RLock(context.Background()); return err })
	ends(t, "Unlock of the write side", func() error { return write.Unlock(context.Background()) })
	ends(t, "Unlock of the read side", func() error { return read.Unlock(context.Background()) })
}

// A Redlock stays as long as a majority of its clients is open, and ends with it.
func TestClosed_Redlock(t *testing.T) {
	redistest.InWorlds(t, func(t *testing.T) {
		all := servers(t, 3)
		var clients []*redis.Client
		for _, srv := range all {
			clients = append(clients, srv.Client(t))
		}
		l := candidateOn(t, clients, mutexes, holdfast.WithLease(time.Hour))
		clients[0].Close()
		mustUnlock(t, mustLock(t, l))
		lease := mustLock(t, l)
		waiter := make(chan error, 1)
		go func() { _, err := l.Lock(context.Background()); waiter <- err }()
		redistest.Eventually(t, patience, "it waits", func() bool { return l.Managers[1].Stats().Waiting+l.Managers[2].Stats().Waiting > 0 })
		clients[1].Close()
		ends(t, "one that waited before", func() error { return <-waiter })
		ends(t, "Unlock", func() error { return lease.Unlock(context.Background()) })
		ends(t, "Lock", func() error { _, err := l.Lock(context.Background()); return err })
		ends(t, "TryLock", func() error { _, err := l.TryLock(context.Background()); return err })
	})
}
