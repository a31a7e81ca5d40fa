package topology

import (
	"context"
	"errors"
	"fmt"
	"net"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/locktest"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

// replicated returns a manager whose grants wait for n replicas.
func replicated(t *testing.T, client redis.UniversalClient, n int, timeout time.Duration) *holdfast.Manager {
	t.Helper()
	return manager(t, client, holdfast.WithReplicas(n, timeout), holdfast.WithHandoffSlice(0))
}

// followed starts a master with n replicas, which are in sync.
func followed(t *testing.T, n int) (master *redistest.Server, followers []*redistest.Server) {
	t.Helper()
	secret := redistest.WithoutPassword()
	master = redistest.Start(t, secret)
	host, port, _ := net.SplitHostPort(master.Addr())
	for range n {
		followers = append(followers, redistest.Start(t, secret, redistest.WithArgs("--replicaof", host, port)))
	}
	acknowledged(t, master, n)
	return master, followers
}

// wantReplicaError fails unless err says that so many have acknowledged.
func wantReplicaError(t *testing.T, err error, want, acked int) {
	t.Helper()
	var r *holdfast.ReplicaError
	if !errors.Is(err, holdfast.ErrUnavailable) || !errors.As(err, &r) {
		t.Fatalf("error %v, want ErrUnavailable with a ReplicaError", err)
	}
	if r.Want != want || r.Acked != acked {
		t.Errorf("%d of %d, want %d of %d", r.Acked, r.Want, acked, want)
	}
}

// AC-87. One of two replicas is connected and stalls: it acknowledges nothing. The
// decision comes in time, and a grant that too few have is undone.
func TestReplicas_OneIsStalled(t *testing.T) {
	t.Parallel()
	srv, followers := followed(t, 2)
	const timeout = 500 * time.Millisecond // of the second that TryLock takes in all
	one, two := replicated(t, srv.Client(t), 1, timeout), replicated(t, srv.Client(t), 2, timeout)
	locktest.MustUnlock(t, locktest.MustLock(t, two.Mutex(name)))
	followers[1].Pause()
	locktest.MustUnlock(t, locktest.MustLock(t, one.Mutex(name)))
	start := time.Now()
	_, err := two.Mutex(name).TryLock(within(t))
	wantReplicaError(t, err, 2, 1)
	if d := time.Since(start); d > 2*time.Second { // go-redis would wait for 5
		t.Errorf("decided after %v", d)
	}
	locktest.MustUnlock(t, locktest.MustLock(t, one.Mutex(name))) // it was undone

	// Lock tries on until both are there again.
	got := wait(t, two, name)
	troubles := two.Stats().Troubles
	redistest.Eventually(t, patience, "it is refused twice", func() bool { return two.Stats().Troubles >= troubles+2 })
	followers[1].Resume()
	locktest.MustUnlock(t, <-got)
}

// Several locks that are taken by one command are acknowledged like one, or all undone.
func TestReplicas_OfAMulti(t *testing.T) {
	t.Parallel()
	srv, followers := followed(t, 1)
	m := replicated(t, srv.Client(t), 1, 500*time.Millisecond)
	l, err := holdfast.NewMulti(m.Mutex("a"), m.Mutex("b"))
	redistest.Must(t, err)
	lease, err := l.Lock(within(t)) // tries on: the follower may be slow at first
	redistest.Must(t, err)
	locktest.MustUnlock(t, lease)
	redistest.Eventually(t, patience, "the one command is acknowledged", func() bool {
		if m.Stats().Locks > 0 {
			return false // one after the other would be taken, as by Lock
		}
		lease, err = l.TryLock(within(t))
		return err == nil
	})
	locktest.MustUnlock(t, lease)
	followers[0].Pause()
	_, err = l.TryLock(within(t))
	wantReplicaError(t, err, 1, 0)
	redistest.Eventually(t, patience, "none is held", func() bool { return srv.Admin().Exists(t.Context(), "a", "b").Val() == 0 })
	followers[0].Resume()
}

// AC-87. No replica at all is a failure and not a silent pass.
func TestReplicas_NoneIsAFailure(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	m := replicated(t, srv.Client(t), 1, 100*time.Millisecond)
	_, err := m.Mutex(name).TryLock(within(t))
	wantReplicaError(t, err, 1, 0)
	redistest.Eventually(t, patience, "undone", func() bool { return srv.Admin().Exists(within(t), name).Val() == 0 })
	_, err = multi(t, m, name, "another").TryLock(within(t)) // in one command
	wantReplicaError(t, err, 1, 0)
	redistest.Eventually(t, patience, "undone", func() bool { return srv.Admin().Exists(within(t), name, "another").Val() == 0 })
}

// A grant that another process hands over has not been acknowledged by a replica: it counts
// only after a request of the waiter's own.
func TestReplicas_GrantByMessage(t *testing.T) {
	t.Parallel()
	srv, followers := followed(t, 1)
	follower := followers[0]
	holder, waiter := manager(t, srv.Client(t)), replicated(t, srv.Client(t), 1, 300*time.Millisecond)
	for _, stalled := range []bool{false, true} {
		held := locktest.MustLock(t, holder.Mutex(name))
		got := wait(t, waiter, name)
		redistest.Eventually(t, patience, "it stands in the queue", func() bool {
			return waiter.Stats().Subscriptions == 1 && srv.Admin().LLen(within(t), "redisson_lock_queue:{"+name+"}").Val() == 1
		})
		if stalled {
			follower.Pause()
		}
		troubles := waiter.Stats().Troubles
		locktest.MustUnlock(t, held)
		if stalled {
			redistest.Eventually(t, patience, "it is refused", func() bool { return waiter.Stats().Troubles > troubles })
			redistest.WantMost(t, len(got), 0, "granted without an acknowledgement")
			follower.Resume()
		}
		locktest.MustUnlock(t, <-got)
		redistest.Want(t, waiter.Stats().Granted, 0, "%d grants were taken on the word of a message")
	}
}

// A server without WAIT says so at the first acquire, and nothing is left behind.
func TestReplicas_ServerWithoutWAIT(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t, redistest.WithArgs("--rename-command", "WAIT", ""))
	m := replicated(t, srv.Client(t), 1, 100*time.Millisecond)
	_, err := m.Mutex(name).Lock(within(t))
	var r *holdfast.ReplicaError
	if !errors.Is(err, holdfast.ErrUnavailable) || !errors.As(err, &r) || r.Err == nil {
		t.Errorf("Lock: %v, want ErrUnavailable and why", err)
	}
	redistest.Eventually(t, patience, "undone", func() bool { return srv.Admin().Exists(within(t), name).Val() == 0 })
}

// In a cluster WAIT follows the acquire to the master that has the lock, also after the slot
// has moved.
func TestReplicas_InCluster(t *testing.T) {
	t.Parallel()
	c := redistest.StartCluster(t)
	m := replicated(t, c.Client(t), 1, 300*time.Millisecond)
	first := m.Mutex("first") // nothing is known about the slots yet
	locktest.MustUnlock(t, locktest.MustLock(t, first))
	for range 3 {
		for i := range 10 {
			locktest.MustUnlock(t, locktest.MustLock(t, m.Mutex(name)))
			locktest.MustUnlock(t, locktest.MustLock(t, m.Mutex(fmt.Sprint("spread", i))))
		}
		c.Migrate(name, c.OtherMaster(name))
	}
	locktest.MustUnlock(t, locktest.MustLock(t, m.Mutex(name))) // it knows where the slot is now
	two := replicated(t, c.Client(t), 2, 500*time.Millisecond)  // each master has one
	far := otherShard(c, name)
	if _, err := two.Inspect(within(t), far); err != nil { // it is connected, and TryLock has time to wait
		t.Fatal(err)
	}
	_, err := two.Mutex(far).TryLock(within(t))
	wantReplicaError(t, err, 2, 1)
	// Last, because a new client may ask this node first where the slots are.
	c.Replica(name).Pause()
	_, err = m.Mutex(name).TryLock(within(t))
	wantReplicaError(t, err, 1, 0)
}

// What WithReplicas does not give: the replica that is promoted need not be the one that
// acknowledged. Two then have the lock, and both leases say that they are valid.
func TestReplicas_AcknowledgedByAnother(t *testing.T) {
	t.Parallel()
	srv, followers := followed(t, 2)
	ahead, behind := followers[0], followers[1]
	isolate(t, srv, behind)
	acknowledged(t, srv, 1) // the other one is back

	held := locktest.MustLock(t, replicated(t, srv.Client(t), 1, time.Second).Mutex(name))
	if ahead.Admin().Exists(context.Background(), name).Val() != 1 {
		t.Fatal("nobody has acknowledged the grant")
	}
	srv.Kill()
	behind.Resume()
	redistest.Must(t, behind.Admin().ReplicaOf(context.Background(), "NO", "ONE").Err())
	second := locktest.MustLock(t, manager(t, behind.Client(t)).Mutex(name))
	if !held.Valid() || !second.Valid() {
		t.Errorf("valid: %v and %v; docs/SAFETY.md says that both are", held.Valid(), second.Valid())
	}
	locktest.MustUnlock(t, second)
}
