package holdfast_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

// behind makes srv a replica that has nothing yet of what the master has, as a name may lead to for
// a moment after a fail-over. caughtUp makes it the master. Who comes through p sees nothing in between.
func behind(t *testing.T, srv *redistest.Server, p *redistest.Proxy) (caughtUp func()) {
	t.Helper()
	ctx, admin := t.Context(), srv.Admin()
	type copied struct {
		key, value string
		ttl        time.Duration
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	p.Freeze(true)
	var all []copied
	for _, key := range srv.Keys() {
		all = append(all, copied{key, admin.Dump(ctx, key).Val(), max(0, admin.PTTL(ctx, key).Val())})
	}
	must(admin.FlushAll(ctx).Err())
	must(admin.Do(ctx, "REPLICAOF", "127.0.0.1", "1").Err())
	p.Freeze(false)
	return func() {
		t.Helper()
		p.Freeze(true)
		must(admin.Do(ctx, "REPLICAOF", "NO", "ONE").Err())
		for _, c := range all {
			must(admin.Restore(ctx, c.key, c.ttl, c.value).Err())
		}
		p.Freeze(false)
	}
}

// troubled waits until Redis has refused a request of m's since it had seen n of them.
func troubled(t *testing.T, m *holdfast.Manager, n uint64) {
	t.Helper()
	redistest.Eventually(t, patience, "a replica refuses", func() bool {
		s := m.Stats()
		return s.Troubles+s.RenewalFailures > n
	})
}

// unlocked unlocks for as long as it takes: Unlock itself waits for a second.
func unlocked(t *testing.T, l *holdfast.Lease) (err error) {
	for {
		if err = l.Unlock(t.Context()); !errors.Is(err, holdfast.ErrUnavailable) || t.Context().Err() != nil {
			return err
		}
	}
}

// A replica that is behind does not know of a lock: nobody concludes from that that it is gone.
func TestReplica_DoesNotSayGone(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	m, p := managerVia(t, srv, holdfast.WithLease(6*time.Second))
	for name, l := range map[string]holdfast.Locker{
		"mutex": m.Mutex("a"), "fair": m.FairMutex("a"), "write": m.RWMutex("a"), "read": m.RWMutex("a").RLocker(),
	} {
		t.Run(name, func(t *testing.T) {
			lease := mustLock(t, l)
			caughtUp := behind(t, srv, p)
			troubled(t, m, m.Stats().RenewalFailures+m.Stats().Troubles) // by renewals
			if !lease.Valid() {
				t.Error(lease.Err())
			}
			caughtUp()

			caughtUp = behind(t, srv, p)
			before := m.Stats().RenewalFailures + m.Stats().Troubles
			released := make(chan error, 1)
			go func() { released <- unlocked(t, lease) }()
			troubled(t, m, before)
			caughtUp()
			if err := <-released; err != nil {
				t.Error(err)
			}
			srv.RequireNoKeys(t, "holdfast_tombstones:")
		})
	}
}

// Nor that the write side is gone, and with it the read side that is to be left of it.
func TestReplica_DowngradeIsAskedAgain(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	m, p := managerVia(t, srv)
	write := mustLock(t, m.RWMutex("a"))
	read, err := m.RWMutex("a").RLock(write.Context(t.Context()))
	if err != nil {
		t.Fatal(err)
	}
	caughtUp := behind(t, srv, p)
	before := m.Stats().Troubles
	done := make(chan error, 1)
	go func() { done <- unlocked(t, write) }()
	troubled(t, m, before)
	caughtUp()
	if err := <-done; err != nil || !read.Valid() {
		t.Error(err, read.Err())
	}
	mustUnlock(t, read)
}

// Nor is a lock taken for held that the master has free; and one of which nothing is known for free.
func TestReplica_DoesNotSayHeld(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	other := managerOn(t, srv)
	m, p := managerVia(t, srv)
	for name, l := range map[string]holdfast.Locker{
		"mutex": m.Mutex("a"), "fair": m.FairMutex("a"), "write": m.RWMutex("a"), "read": m.RWMutex("a").RLocker(),
		"multi": multi(t, m.Mutex("a"), m.Mutex("b")),
	} {
		t.Run(name, func(t *testing.T) {
			held := holdfast.Locker(other.Mutex("a"))
			if name == "write" || name == "read" {
				held = other.RWMutex("a")
			}
			lease := mustLock(t, held)
			if err := srv.Admin().Do(t.Context(), "REPLICAOF", "127.0.0.1", "1").Err(); err != nil {
				t.Fatal(err)
			}
			_, err := l.TryLock(t.Context())
			wantErr(t, err, holdfast.ErrUnavailable, holdfast.ErrNotAcquired)
			if err := srv.Admin().Do(t.Context(), "REPLICAOF", "NO", "ONE").Err(); err != nil {
				t.Fatal(err)
			}
			mustUnlock(t, lease)
		})
	}
	mustLock(t, m.Mutex("c"))
	caughtUp := behind(t, srv, p)
	freed, err := m.ForceUnlock(context.Background(), "c")
	if err == nil || freed {
		t.Errorf("ForceUnlock: %v, %v", freed, err)
	}
	caughtUp()
}
