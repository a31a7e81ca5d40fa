package several

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/locktest"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

// Locks of one manager that are free cost one command, and releasing them one each, in
// flight together.
func TestMulti_IsOneCommand(t *testing.T) {
	redistest.OnServer(t, func(t *testing.T, srv *redistest.Server) {
		m := locktest.ManagerOn(t, srv)
		l := Multi(t, m.Mutex("b"), m.FairMutex("a"), m.Mutex("c", holdfast.WithLease(time.Minute)))
		before := m.Stats().Commands
		lease := locktest.MustLock(t, l)
		redistest.Want(t, m.Stats().Commands-before, 1, "%d commands for a lock of three names")
		for _, k := range []string{"a", "b", "c"} {
			if ttl := srv.Admin().PTTL(t.Context(), k).Val(); ttl <= 0 {
				t.Errorf("TTL of %s is %v", k, ttl)
			}
		}
		if lease.Name() != "a+b+c" || lease.Token() != 0 || !lease.Valid() || time.Until(lease.Deadline()) < 20*time.Second {
			t.Errorf("lease %q, token %d, valid %v, deadline in %v", lease.Name(), lease.Token(), lease.Valid(), time.Until(lease.Deadline()))
		}
		again, err := l.Lock(lease.Context(t.Context()))
		if err != nil {
			t.Fatalf("re-entry: %v", err)
		}
		tried, err := l.TryLock(lease.Context(t.Context()))
		if err != nil {
			t.Fatalf("re-entry without waiting: %v", err)
		}
		redistest.Want(t, m.Stats().Commands-before, 1, "%d commands with re-entries")
		locktest.MustUnlock(t, tried, lease)
		locktest.WantErr(t, lease.Unlock(t.Context()), holdfast.ErrNotHeld, nil)
		if _, err := locktest.ManagerOn(t, srv).Mutex("b").TryLock(t.Context()); !errors.Is(err, holdfast.ErrNotAcquired) {
			t.Errorf("free although re-entered: %v", err)
		}
		locktest.MustUnlock(t, again)
		srv.RequireNoKeys(t)

		// Unlock returns a moment before the last of a lock is forgotten.
		before = m.Stats().Commands
		for range 300 {
			locktest.MustUnlock(t, locktest.MustLock(t, l))
		}
		if n := m.Stats().Commands - before; n != 300*4 && m.Stats().Troubles == 0 { // a request that took too long is repeated
			t.Errorf("%d commands for 300 times three names, expected %d", n, 300*4)
		}
	})
}

// Locks of all kinds, a Multi within a Multi, and both sides of a read-write lock by
// different owners.
func TestMulti_OfEveryKind(t *testing.T) {
	redistest.OnServer(t, func(t *testing.T, srv *redistest.Server) {
		m, other := locktest.ManagerOn(t, srv), locktest.ManagerOn(t, srv)
		l := Multi(t, Multi(t, m.FairMutex("fair"), m.RWMutex("shared").RLocker()), m.Mutex("plain", holdfast.WithFencing()))
		reader := Multi(t, other.RWMutex("shared").RLocker(), other.Mutex("own"))
		lease, second := locktest.MustLock(t, l), locktest.MustLock(t, reader)
		redistest.Want(t, lease.Name(), "fair+plain+shared", "name %q")
		for _, k := range []holdfast.Locker{other.FairMutex("fair"), other.RWMutex("shared"), other.Mutex("plain", holdfast.WithFencing())} {
			if _, err := k.TryLock(t.Context()); !errors.Is(err, holdfast.ErrNotAcquired) {
				t.Errorf("%T: %v", k, err)
			}
		}
		locktest.MustUnlock(t, lease, second)
		n := 0
		sync := holdfast.SyncLocker(t.Context(), l)
		sync.Lock()
		n++
		sync.Unlock()
		if err := holdfast.Do(t.Context(), l, func(ctx context.Context, lease *holdfast.Lease) error {
			n++
			return lease.Unlock(ctx)
		}); err != nil || n != 2 {
			t.Errorf("%v after %d sections", err, n)
		}
		srv.RequireNoKeys(t, "redisson_lock_token", "holdfast_tombstones", "plain")
		redistest.Want(t, srv.Admin().HLen(t.Context(), "plain").Val(), 0, "plain is held")
	})
}

// The lease of several locks has no token, but each of them that is fenced has taken one.
func TestMulti_OfFencedLocks(t *testing.T) {
	redistest.OnServer(t, func(t *testing.T, srv *redistest.Server) {
		m, other := locktest.ManagerOn(t, srv), locktest.ManagerOn(t, srv)
		a := m.Mutex("a", holdfast.WithFencing())
		lease := locktest.MustLock(t, Multi(t, a, m.Mutex("b", holdfast.WithFencing())))
		part := locktest.Got(t, a.Lock, lease.Context(t.Context()))
		if last, err := srv.Admin().Get(t.Context(), "redisson_lock_token:{a}").Uint64(); err != nil || part.Token() == 0 || part.Token() > last {
			t.Errorf("token %d, the counter says %d, %v", part.Token(), last, err)
		}
		locktest.MustUnlock(t, part, lease)
		next := locktest.MustLock(t, other.Mutex("a", holdfast.WithFencing()))
		if next.Token() <= part.Token() {
			t.Errorf("token %d after %d", next.Token(), part.Token())
		}
		locktest.MustUnlock(t, next)
	})
}

// The order is that of the names in Redis: processes may have mappers of their own.
func TestMulti_OrderIsThatOfMappedNames(t *testing.T) {
	redistest.OnServer(t, func(t *testing.T, srv *redistest.Server) {
		names := map[string]string{"a": "y", "b": "x"}
		m, other := locktest.ManagerOn(t, srv, holdfast.WithNameMapper(func(name string) string { return names[name] })), locktest.ManagerOn(t, srv)
		held := locktest.MustLock(t, other.Mutex("x"))
		got := locktest.Waits(t, Multi(t, m.Mutex("a"), m.Mutex("b")))
		locktest.Queued(t, srv, "redisson_lock_queue:{x}", 1)
		redistest.Want(t, srv.Admin().Exists(t.Context(), "y").Val(), 0, "y is held by who waits for x")
		locktest.MustUnlock(t, held)
		locktest.MustUnlock(t, got())
	})
}

func TestRedlock_IsALock(t *testing.T) {
	redistest.InWorlds(t, func(t *testing.T) {
		all := Servers(t, 3)
		c, other := all.Candidate(t, holdfast.WithLease(holdfast.DefaultLease)), all.Candidate(t)
		before := time.Now()
		lease := locktest.MustLock(t, c)
		if d := lease.Deadline(); lease.Name() != Vote || lease.Token() != 0 || !lease.Valid() || d.After(time.Now().Add(30*time.Second)) || d.Before(before.Add(29*time.Second)) {
			t.Errorf("lease %q, token %d, valid %v, deadline in %v", lease.Name(), lease.Token(), lease.Valid(), time.Until(d))
		}
		_, err := other.TryLock(t.Context())
		locktest.WantErr(t, err, holdfast.ErrNotAcquired, holdfast.ErrUnavailable)
		again := locktest.Got(t, c.Lock, lease.Context(t.Context()))
		tried := locktest.Got(t, c.TryLock, again.Context(t.Context())) // it re-enters what has been re-entered
		_, err = c.TryLock(holdfast.WithoutOwner(tried.Context(t.Context())))
		locktest.WantErr(t, err, holdfast.ErrNotAcquired, nil)
		locktest.MustUnlock(t, tried)
		all.heldBy(t, 3)
		locktest.MustUnlock(t, lease)
		if !again.Valid() || lease.Valid() || lease.Err() != holdfast.ErrReleased || lease.Deadline().IsZero() {
			t.Errorf("after the first Unlock: %v %v %v", again.Valid(), lease.Err(), lease.Deadline())
		}
		locktest.WantErr(t, lease.Unlock(t.Context()), holdfast.ErrNotHeld, nil)
		_, err = other.TryLock(t.Context())
		locktest.WantErr(t, err, holdfast.ErrNotAcquired, nil)
		locktest.MustUnlock(t, again)
		all.heldBy(t, 0)

		n := 0
		sync := holdfast.SyncLocker(t.Context(), other)
		sync.Lock()
		n++
		sync.Unlock()
		if err := holdfast.Do(t.Context(), c, func(ctx context.Context, lease *holdfast.Lease) error {
			inner, err := c.TryLock(ctx)
			if err != nil {
				return err
			}
			n++
			return inner.Unlock(ctx)
		}); err != nil || n != 2 {
			t.Errorf("%v after %d sections", err, n)
		}
		all.heldBy(t, 0)
	})
}

// With one member down, the majority that is held is enough to re-enter, at once; and the lease taken
// so follows the outer one when that has the member back.
func TestReentry_OfARedlockWithAMemberDown(t *testing.T) {
	redistest.InWorlds(t, func(t *testing.T) {
		all := Servers(t, 3)
		c := all.Candidate(t)
		all[2].Pause()
		lease := locktest.MustLock(t, c)
		again := locktest.Got(t, c.Lock, lease.Context(t.Context()))
		all[2].Resume()
		redistest.Eventually(t, locktest.Patience, "both leases have the member", func() bool { return c.Managers[2].Stats().Reentered == 1 })
		locktest.MustUnlock(t, lease)
		redistest.Want(t, again.Valid(), true, "the inner lease ended with the outer one")
		locktest.MustUnlock(t, again)
		all.heldBy(t, 0)
	})
}

// The owner of the write side may take the read side and keep it; the other way round
// is refused at once.
func TestRedlock_DowngradeAndUpgrade(t *testing.T) {
	redistest.InWorlds(t, func(t *testing.T) {
		all := Servers(t, 3)
		write := all.CandidateFor(t, writeSide)
		var reads []holdfast.Locker
		for _, m := range write.Managers {
			reads = append(reads, readSide(m))
		}
		read, err := holdfast.NewRedlock(reads...)
		redistest.Must(t, err)
		reader, writer := all.CandidateFor(t, readSide), all.CandidateFor(t, writeSide)
		w := locktest.MustLock(t, write)
		r := locktest.Got(t, read.Lock, w.Context(t.Context()))
		locktest.MustUnlock(t, w)
		if _, err := writer.TryLock(t.Context()); err == nil {
			t.Error("a writer came in beside the reader")
		}
		locktest.MustUnlock(t, locktest.MustLock(t, reader))
		_, err = write.Lock(r.Context(t.Context()))
		locktest.WantErr(t, err, holdfast.ErrWouldDeadlock, holdfast.ErrNotAcquired)
		locktest.MustUnlock(t, r)
		all.clean(t)
	})
}
