package holdfast_test

import (
	"context"
	"testing"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

// A mutex and a fair lock of one name are one lock in Redis and two here: who has one of them and
// asks for the other is told that it would wait for itself. Other owners wait.
func TestLock_OfBothKindsByOneOwner(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	m := managerOn(t, srv)
	for _, locks := range [][2]holdfast.Locker{{m.Mutex("a"), m.FairMutex("a")}, {m.FairMutex("a"), m.Mutex("a")}} {
		lease := mustLock(t, locks[0])
		ctx, cancel := context.WithTimeout(lease.Context(t.Context()), patience)
		for _, l := range []holdfast.Locker{locks[1], multi(t, m.Mutex("0"), locks[1])} {
			_, err := l.TryLock(ctx)
			wantErr(t, err, holdfast.ErrWouldDeadlock, holdfast.ErrNotAcquired)
			_, err = l.Lock(ctx)
			wantErr(t, err, holdfast.ErrWouldDeadlock, holdfast.ErrNotAcquired)
		}
		_, err := locks[1].TryLock(holdfast.WithoutOwner(ctx))
		wantErr(t, err, holdfast.ErrNotAcquired, holdfast.ErrWouldDeadlock)
		got := waits(t, locks[1])
		redistest.Eventually(t, patience, "another owner waits", func() bool { return m.Stats().Waiting == 1 })
		mustUnlock(t, lease)
		mustUnlock(t, got())
		cancel()
	}
}
