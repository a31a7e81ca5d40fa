package topology

import (
	"context"
	"net"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/redistest"
)

// What WithReplicas does not give: the replica that is promoted need not be the one that
// acknowledged. Two then have the lock, and both leases say that they are valid.
func TestReplicas_AcknowledgedByAnother(t *testing.T) {
	t.Parallel()
	secret := redistest.WithoutPassword()
	srv := redistest.Start(t, secret)
	host, port, _ := net.SplitHostPort(srv.Addr())
	ahead := redistest.Start(t, secret, redistest.WithArgs("--replicaof", host+" "+port))
	behind := redistest.Start(t, secret, redistest.WithArgs("--replicaof", host+" "+port))
	acknowledged(t, srv, 2)
	isolate(t, srv, behind)
	acknowledged(t, srv, 1) // the other one is back

	held := mustLock(t, replicated(t, srv.Client(t), 1, time.Second).Mutex(name))
	if ahead.Admin().Exists(context.Background(), name).Val() != 1 {
		t.Fatal("nobody has acknowledged the grant")
	}
	srv.Kill()
	behind.Resume()
	if err := behind.Admin().ReplicaOf(context.Background(), "NO", "ONE").Err(); err != nil {
		t.Fatal(err)
	}
	second := mustLock(t, manager(t, behind.Client(t)).Mutex(name))
	if !held.Valid() || !second.Valid() {
		t.Errorf("valid: %v and %v; docs/SAFETY.md says that both are", held.Valid(), second.Valid())
	}
	mustUnlock(t, second)
}
