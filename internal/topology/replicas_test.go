package topology

import (
	"errors"
	"net"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

// replicasExist says whether WithReplicas does something yet. The tests of it fail when
// New disagrees.
const replicasExist = false

// replicated returns a manager whose grants wait for n replicas.
func replicated(t *testing.T, client redis.UniversalClient, n int, timeout time.Duration) *holdfast.Manager {
	t.Helper()
	_, err := holdfast.New(client, holdfast.WithReplicas(n, timeout))
	if exists := !errors.Is(err, holdfast.ErrInvalidOption); exists != replicasExist {
		t.Fatalf("New with WithReplicas: %v, and replicasExist = %t", err, replicasExist)
	}
	if !replicasExist {
		t.Skip("New refuses WithReplicas: not available yet")
	}
	return manager(t, client, holdfast.WithReplicas(n, timeout))
}

// AC-87. One of two replicas is connected and stalls: it acknowledges nothing. The
// decision comes in time, and a grant that too few have is undone.
func TestReplicas_OneIsStalled(t *testing.T) {
	t.Parallel()
	secret := redistest.WithoutPassword()
	srv := redistest.Start(t, secret)
	host, port, _ := net.SplitHostPort(srv.Addr())
	var followers []*redistest.Server
	for range 2 {
		followers = append(followers, redistest.Start(t, secret, redistest.WithArgs("--replicaof", host+" "+port)))
	}
	acknowledged(t, srv, 2)
	const timeout = 300 * time.Millisecond
	one, two := replicated(t, srv.Client(t), 1, timeout), replicated(t, srv.Client(t), 2, timeout)
	mustUnlock(t, mustLock(t, two.Mutex(name)))
	followers[1].Pause()
	mustUnlock(t, mustLock(t, one.Mutex(name)))
	start := time.Now()
	if _, err := two.Mutex(name).TryLock(within(t)); !errors.Is(err, holdfast.ErrUnavailable) {
		t.Errorf("TryLock with one of two acknowledgements: %v, want ErrUnavailable", err)
	}
	if d := time.Since(start); d > timeout*slack {
		t.Errorf("decided after %v", d)
	}
	mustUnlock(t, mustLock(t, one.Mutex(name))) // it was undone
}

// AC-87. No replica at all is a failure and not a silent pass.
func TestReplicas_NoneIsAFailure(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	m := replicated(t, srv.Client(t), 1, 100*time.Millisecond)
	if _, err := m.Mutex(name).TryLock(within(t)); !errors.Is(err, holdfast.ErrUnavailable) {
		t.Errorf("TryLock: %v, want ErrUnavailable", err)
	}
	eventually(t, "undone", func() bool { return srv.Admin().Exists(within(t), name).Val() == 0 })
}
