package holdfast_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

func multi(t *testing.T, locks ...holdfast.Locker) *holdfast.Multi {
	t.Helper()
	l, err := holdfast.NewMulti(locks...)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// AC-77 and others: what cannot be one lock is refused before anything is sent.
func TestMulti_RefusesBadLocks(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	m := managerOn(t, srv)
	a, b := m.Mutex("a"), m.Mutex("b")
	for name, locks := range map[string][]holdfast.Locker{
		"none":             {},
		"nil":              {a, nil},
		"typed nil":        {a, (*holdfast.Mutex)(nil)},
		"nobody's side":    {a, (*holdfast.RWMutex)(nil).RLocker()},
		"twice":            {a, b, m.Mutex("a")},
		"two kinds":        {a, m.FairMutex("a")},
		"both sides":       {m.RWMutex("x"), m.RWMutex("x").RLocker()},
		"twice in a multi": {a, multi(t, b, m.Mutex("a"))},
	} {
		if _, err := holdfast.NewMulti(locks...); !errors.Is(err, holdfast.ErrInvalidOption) {
			t.Errorf("%s: %v, want ErrInvalidOption", name, err)
		}
	}
	bad := multi(t, a, m.Mutex(""))
	if _, err := bad.Lock(t.Context()); !errors.Is(err, holdfast.ErrInvalidName) {
		t.Errorf("a bad name: %v", err)
	}
	srv.RequireNoKeys(t)
}

// Locks of one manager that are free cost one command, and releasing them one each, in
// flight together.
func TestMulti_IsOneCommand(t *testing.T) {
	redistest.InWorlds(t, func(t *testing.T) {
		srv := redistest.Start(t)
		m := managerOn(t, srv)
		l := multi(t, m.Mutex("b"), m.FairMutex("a"), m.Mutex("c", holdfast.WithLease(time.Minute)))
		before := m.Stats().Commands
		lease := mustLock(t, l)
		if n := m.Stats().Commands - before; n != 1 {
			t.Errorf("%d commands for a lock of three names", n)
		}
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
		if n := m.Stats().Commands - before; n != 1 {
			t.Errorf("%d commands with re-entries", n)
		}
		mustUnlock(t, tried)
		mustUnlock(t, lease)
		if err := lease.Unlock(t.Context()); !errors.Is(err, holdfast.ErrNotHeld) {
			t.Errorf("second Unlock: %v", err)
		}
		if _, err := managerOn(t, srv).Mutex("b").TryLock(t.Context()); !errors.Is(err, holdfast.ErrNotAcquired) {
			t.Errorf("free although re-entered: %v", err)
		}
		mustUnlock(t, again)
		srv.RequireNoKeys(t)

		// Unlock returns a moment before the last of a lock is forgotten.
		before = m.Stats().Commands
		for range 300 {
			mustUnlock(t, mustLock(t, l))
		}
		if n := m.Stats().Commands - before; n != 300*4 {
			t.Errorf("%d commands for 300 times three names, expected %d", n, 300*4)
		}
	})
}

// AC-75: what was taken before the refusal is released at once.
func TestMulti_RollsBack(t *testing.T) {
	redistest.InWorlds(t, func(t *testing.T) {
		srv, srv2 := redistest.Start(t), redistest.Start(t)
		m, m2, other := managerOn(t, srv), managerOn(t, srv2), managerOn(t, srv)
		held := mustLock(t, other.Mutex("d"))
		l := multi(t, m.Mutex("a"), m2.Mutex("b"), m.RWMutex("c"), m.Mutex("d"), m.Mutex("e"))
		if _, err := l.TryLock(t.Context()); !errors.Is(err, holdfast.ErrNotAcquired) {
			t.Fatalf("TryLock: %v", err)
		}
		redistest.Eventually(t, patience, "rolled back", func() bool { return len(lastingKeys(srv)) == 1 && len(lastingKeys(srv2)) == 0 })

		ctx, cancel := context.WithCancel(t.Context())
		left := make(chan error, 1)
		go func() { _, err := l.Lock(ctx); left <- err }()
		redistest.Eventually(t, patience, "it waits", func() bool { return m.Stats().Waiting == 1 && m.Stats().Subscriptions > 0 })
		cancel()
		if err := <-left; !errors.Is(err, holdfast.ErrNotAcquired) || !errors.Is(err, context.Canceled) {
			t.Fatalf("Lock: %v", err)
		}
		redistest.Eventually(t, patience, "rolled back", func() bool { return len(lastingKeys(srv)) == 1 && len(lastingKeys(srv2)) == 0 })

		got := waits(t, l)
		redistest.Eventually(t, patience, "it waits", func() bool { return m.Stats().Waiting == 1 })
		mustUnlock(t, held)
		lease := got()
		mustUnlock(t, lease)
		srv.RequireNoKeys(t)
		srv2.RequireNoKeys(t)
	})
}

// AC-74: opposite orders, no deadlock, and exclusion over all of them.
func TestMulti_OppositeOrders(t *testing.T) {
	redistest.InWorlds(t, func(t *testing.T) {
		srv := redistest.Start(t)
		a, b := managerOn(t, srv), managerOn(t, srv)
		alone(t, 300,
			multi(t, a.Mutex("x"), a.Mutex("y")), multi(t, b.Mutex("y"), b.Mutex("x")),
			multi(t, a.Mutex("y"), a.Mutex("z")), multi(t, b.RWMutex("w"), b.Mutex("y"), b.Mutex("x")))
		srv.RequireTTLs(t)
	})
}

// AC-83: one member is lost, the lease ends, the others are released.
func TestMulti_EndsWithTheFirstLost(t *testing.T) {
	redistest.InWorlds(t, func(t *testing.T) {
		srv := redistest.Start(t)
		m := managerOn(t, srv, holdfast.WithLease(4*time.Second))
		lease := mustLock(t, multi(t, m.Mutex("a"), m.Mutex("b"), m.RWMutex("c")))
		ctx := lease.Context(t.Context())
		srv.Admin().Del(t.Context(), "b")
		select {
		case <-ctx.Done():
		case <-time.After(patience):
			t.Fatal("nobody was told")
		}
		var lost *holdfast.LostError
		if !errors.As(context.Cause(ctx), &lost) || lost.Name != "b" || lease.Valid() {
			t.Errorf("cause %v, valid %v", context.Cause(ctx), lease.Valid())
		}
		if err := lease.Unlock(t.Context()); !errors.Is(err, holdfast.ErrLeaseLost) {
			t.Errorf("Unlock: %v", err)
		}
		redistest.Eventually(t, patience, "the others are released", func() bool { return len(lastingKeys(srv)) == 0 })
	})
}

func TestMulti_ExtendAndClose(t *testing.T) {
	redistest.InWorlds(t, func(t *testing.T) {
		srv := redistest.Start(t)
		m := managerOn(t, srv, holdfast.WithFixedLease(20*time.Second))
		lease := mustLock(t, multi(t, m.Mutex("a"), m.Mutex("b")))
		if mustExtend(t, lease, time.Minute); time.Until(lease.Deadline()) < 40*time.Second {
			t.Errorf("deadline in %v", time.Until(lease.Deadline()))
		}
		if err := m.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		<-lease.Done()
		if err := lease.Err(); !errors.Is(err, holdfast.ErrClosed) {
			t.Errorf("after Close: %v", err)
		}
		srv.RequireNoKeys(t)
	})
}

// Locks of all kinds, a Multi within a Multi, and both sides of a read-write lock by
// different owners.
func TestMulti_OfEveryKind(t *testing.T) {
	redistest.InWorlds(t, func(t *testing.T) {
		srv := redistest.Start(t)
		m, other := managerOn(t, srv), managerOn(t, srv)
		l := multi(t, multi(t, m.FairMutex("fair"), m.RWMutex("shared").RLocker()), m.Mutex("plain", holdfast.WithFencing()))
		reader := multi(t, other.RWMutex("shared").RLocker(), other.Mutex("own"))
		lease, second := mustLock(t, l), mustLock(t, reader)
		if lease.Name() != "fair+plain+shared" {
			t.Errorf("name %q", lease.Name())
		}
		for _, k := range []holdfast.Locker{other.FairMutex("fair"), other.RWMutex("shared"), other.Mutex("plain", holdfast.WithFencing())} {
			if _, err := k.TryLock(t.Context()); !errors.Is(err, holdfast.ErrNotAcquired) {
				t.Errorf("%T: %v", k, err)
			}
		}
		mustUnlock(t, lease)
		mustUnlock(t, second)
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
		if srv.Admin().HLen(t.Context(), "plain").Val() != 0 {
			t.Error("plain is held")
		}
	})
}

// The order is that of the names in Redis: processes may have mappers of their own.
func TestMulti_OrderIsThatOfMappedNames(t *testing.T) {
	redistest.InWorlds(t, func(t *testing.T) {
		srv := redistest.Start(t)
		names := map[string]string{"a": "y", "b": "x"}
		m, other := managerOn(t, srv, holdfast.WithNameMapper(func(name string) string { return names[name] })), managerOn(t, srv)
		held := mustLock(t, other.Mutex("x"))
		got := waits(t, multi(t, m.Mutex("a"), m.Mutex("b")))
		queued(t, srv, "redisson_lock_queue:{x}", 1)
		if n := srv.Admin().Exists(t.Context(), "y").Val(); n != 0 {
			t.Error("y is held by who waits for x")
		}
		mustUnlock(t, held)
		mustUnlock(t, got())
	})
}

// The lease of several locks has no token, but each of them that is fenced has taken one.
func TestMulti_OfFencedLocks(t *testing.T) {
	redistest.InWorlds(t, func(t *testing.T) {
		srv := redistest.Start(t)
		m, other := managerOn(t, srv), managerOn(t, srv)
		a := m.Mutex("a", holdfast.WithFencing())
		lease := mustLock(t, multi(t, a, m.Mutex("b", holdfast.WithFencing())))
		part, err := a.Lock(lease.Context(t.Context()))
		if err != nil {
			t.Fatal(err)
		}
		if last, err := srv.Admin().Get(t.Context(), "redisson_lock_token:{a}").Uint64(); err != nil || part.Token() == 0 || part.Token() > last {
			t.Errorf("token %d, the counter says %d, %v", part.Token(), last, err)
		}
		mustUnlock(t, part)
		mustUnlock(t, lease)
		next := mustLock(t, other.Mutex("a", holdfast.WithFencing()))
		if next.Token() <= part.Token() {
			t.Errorf("token %d after %d", next.Token(), part.Token())
		}
		mustUnlock(t, next)
	})
}

// TryLock asks one question and waits for nobody.
func TestMulti_TryLockNeverWaits(t *testing.T) {
	redistest.InWorlds(t, func(t *testing.T) {
		srv := redistest.Start(t)
		m, other := managerOn(t, srv), managerOn(t, srv)
		for name, l := range map[string]holdfast.Locker{"mutex": other.Mutex("b"), "fair": other.FairMutex("b"), "read": other.RWMutex("b").RLocker()} {
			held := mustLock(t, l)
			var b holdfast.Locker = m.Mutex("b")
			if name == "read" {
				b = m.RWMutex("b")
			}
			_, err := multi(t, m.Mutex("a"), b, m.Mutex("c")).TryLock(t.Context())
			if want := holdfast.ErrNotAcquired; !errors.Is(err, want) || m.Stats().Polls+m.Stats().Wakeups != 0 {
				t.Errorf("%s: %v, %d polls", name, err, m.Stats().Polls)
			}
			mustUnlock(t, held)
			redistest.Eventually(t, patience, "rolled back", func() bool { return len(lastingKeys(srv)) == 0 })
		}
	})
}

// A lock whose time is over while the next is waited for is taken again: the lease that
// Lock returns is of locks that are all held.
func TestMulti_BeginsAgain(t *testing.T) {
	redistest.InWorlds(t, func(t *testing.T) {
		srv := redistest.Start(t)
		m, other := managerOn(t, srv), managerOn(t, srv)
		for name, end := range map[string]struct {
			opts []holdfast.LockOption
			now  func()
		}{
			"fixed":    {opts: []holdfast.LockOption{holdfast.WithFixedLease(2 * time.Second)}},
			"max hold": {opts: []holdfast.LockOption{holdfast.WithLease(2 * time.Second), holdfast.WithMaxHold(2 * time.Second)}},
			"deleted":  {opts: []holdfast.LockOption{holdfast.WithLease(3 * time.Second)}, now: func() { srv.Admin().Del(t.Context(), "a") }},
		} {
			held := mustLock(t, other.Mutex("b"))
			got := waits(t, multi(t, m.Mutex("a", end.opts...), m.Mutex("b")))
			lost := m.Stats().Lost
			redistest.Eventually(t, patience, name+": it waits", func() bool { return m.Stats().Waiting == 1 && m.Stats().Held == 1 })
			if end.now != nil {
				end.now()
			}
			redistest.Eventually(t, patience, name+": it is lost and taken again", func() bool {
				return m.Stats().Lost > lost && srv.Admin().Exists(t.Context(), "a").Val() == 1
			})
			mustUnlock(t, held)
			lease := got()
			if !lease.Valid() || srv.Admin().Exists(t.Context(), "a", "b").Val() != 2 {
				t.Errorf("%s: valid %v, keys %v", name, lease.Valid(), srv.Keys())
			}
			_ = lease.Unlock(t.Context()) // its time may be over
			redistest.Eventually(t, patience, name+": released", func() bool { return len(lastingKeys(srv)) == 0 })
		}
	})
}

// AC-78: however often it has to begin again, each lock has its own lease.
func TestMulti_LeasesStayAsTheyAre(t *testing.T) {
	redistest.InWorlds(t, func(t *testing.T) {
		srv := redistest.Start(t)
		m, other := managerOn(t, srv), managerOn(t, srv)
		leases := map[string]time.Duration{"a": 20 * time.Second, "b": 40 * time.Second}
		held := mustLock(t, other.Mutex("b"))
		// A read-write lock is taken by itself: a renewal tells of its end.
		got := waits(t, multi(t, m.RWMutex("a", holdfast.WithFixedLease(leases["a"])), m.Mutex("b", holdfast.WithLease(leases["b"]))))
		queued(t, srv, "redisson_lock_queue:{b}", 1) // before, it asked for both without waiting, and gave the first back
		for range 3 {
			redistest.Eventually(t, patience, "it has the first", func() bool { return m.Stats().Held == 1 && srv.Admin().Exists(t.Context(), "a").Val() == 1 })
			if ok, err := m.ForceUnlock(t.Context(), "a"); !ok || err != nil {
				t.Fatalf("ForceUnlock: %v, %v", ok, err)
			}
		}
		redistest.Eventually(t, patience, "it has the first", func() bool { return m.Stats().Held == 1 && srv.Admin().Exists(t.Context(), "a").Val() == 1 })
		mustUnlock(t, held)
		lease := got()
		for name, ttl := range leases {
			redistest.Eventually(t, patience, fmt.Sprintf("the TTL of %s is %v, also after a grant by message", name, ttl), func() bool {
				is := srv.Admin().PTTL(t.Context(), name).Val()
				return is <= ttl && is > ttl-10*time.Second
			})
		}
		if d := time.Until(lease.Deadline()); d > leases["a"] {
			t.Errorf("deadline in %v", d)
		}
		mustUnlock(t, lease)
		srv.RequireNoKeys(t)
	})
}

// AC-74: Multis that share names, in tight loops, all get on.
func TestMulti_NoLivelock(t *testing.T) {
	redistest.InWorlds(t, func(t *testing.T) {
		srv := redistest.Start(t)
		var all []holdfast.Locker
		for range 4 {
			m := managerOn(t, srv)
			all = append(all, multi(t, m.Mutex("x"), m.FairMutex("y"), m.RWMutex("z")), multi(t, m.RWMutex("z"), m.Mutex("x"), m.Mutex("w")))
		}
		alone(t, 60, all...)
		srv.RequireTTLs(t)
	})
}
