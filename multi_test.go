package holdfast_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

// managerOn returns a manager on srv that is closed with the test.
func managerOn(t *testing.T, srv *redistest.Server, opts ...holdfast.Option) *holdfast.Manager {
	t.Helper()
	m, err := holdfast.New(srv.Client(t), opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = m.Close(context.Background()) })
	return m
}

func multi(t *testing.T, locks ...holdfast.Locker) *holdfast.Multi {
	t.Helper()
	l, err := holdfast.NewMulti(locks...)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func mustLock(t *testing.T, l holdfast.Locker) *holdfast.Lease {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	lease, err := l.Lock(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return lease
}

func mustUnlock(t *testing.T, l *holdfast.Lease) {
	t.Helper()
	if err := l.Unlock(context.Background()); err != nil {
		t.Fatal(err)
	}
}

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(5 * time.Second); !ok(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not within 5s: %s", what)
		}
	}
}

func TestMulti_RefusesBadLocks(t *testing.T) {
	srv := redistest.Start(t)
	m := managerOn(t, srv)
	a, b := m.Mutex("a"), m.Mutex("b")
	for name, locks := range map[string][]holdfast.Locker{
		"none":             {},
		"nil":              {a, nil},
		"typed nil":        {a, (*holdfast.Mutex)(nil)},
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
	mustUnlock(t, lease)
	if err := lease.Unlock(t.Context()); !errors.Is(err, holdfast.ErrNotHeld) {
		t.Errorf("second Unlock: %v", err)
	}
	if _, err := managerOn(t, srv).Mutex("b").TryLock(t.Context()); !errors.Is(err, holdfast.ErrNotAcquired) {
		t.Errorf("free although re-entered: %v", err)
	}
	mustUnlock(t, again)
	srv.RequireNoKeys(t)
}

// AC-75: what was taken before the refusal is released at once.
func TestMulti_RollsBack(t *testing.T) {
	srv, srv2 := redistest.Start(t), redistest.Start(t)
	m, m2, other := managerOn(t, srv), managerOn(t, srv2), managerOn(t, srv)
	held := mustLock(t, other.Mutex("d"))
	l := multi(t, m.Mutex("a"), m2.Mutex("b"), m.RWMutex("c"), m.Mutex("d"), m.Mutex("e"))
	if _, err := l.TryLock(t.Context()); !errors.Is(err, holdfast.ErrNotAcquired) {
		t.Fatalf("TryLock: %v", err)
	}
	eventually(t, "rolled back", func() bool { return len(srv.Keys()) == 1 && len(srv2.Keys()) == 0 })

	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if _, err := l.Lock(ctx); !errors.Is(err, holdfast.ErrNotAcquired) || !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("Lock: %v", err)
	}
	eventually(t, "rolled back", func() bool { return len(srv.Keys()) == 1 && len(srv2.Keys()) == 0 })

	got := make(chan *holdfast.Lease, 1)
	go func() { got <- mustLock(t, l) }()
	eventually(t, "it waits", func() bool { return m.Stats().Waiting == 1 })
	mustUnlock(t, held)
	lease := <-got
	mustUnlock(t, lease)
	srv.RequireNoKeys(t)
	srv2.RequireNoKeys(t)
}

// AC-76: a member that does not answer is released as well, once it does.
func TestMulti_RollsBackTheSilent(t *testing.T) {
	srv, silent := redistest.Start(t), redistest.Start(t)
	m, m2 := managerOn(t, srv), managerOn(t, silent)
	mustUnlock(t, mustLock(t, m2.Mutex("warm")))
	l := multi(t, m.Mutex("a"), m2.Mutex("b"))
	silent.Pause()
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if _, err := l.Lock(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("Lock: %v", err)
	}
	eventually(t, "the first is released", func() bool { return len(srv.Keys()) == 0 })
	silent.Resume()
	eventually(t, "the silent one is released", func() bool { return silent.Admin().Exists(t.Context(), "b").Val() == 0 })
	silent.RequireTTLs(t)
}

// AC-74: opposite orders, no deadlock, and exclusion over all of them.
func TestMulti_OppositeOrders(t *testing.T) {
	srv := redistest.Start(t)
	a, b := managerOn(t, srv), managerOn(t, srv)
	rounds := 300
	var inside atomic.Int32
	var wg sync.WaitGroup
	for i, l := range []*holdfast.Multi{
		multi(t, a.Mutex("x"), a.Mutex("y")), multi(t, b.Mutex("y"), b.Mutex("x")),
		multi(t, a.Mutex("y"), a.Mutex("z")), multi(t, b.RWMutex("w"), b.Mutex("y"), b.Mutex("x")),
	} {
		wg.Go(func() {
			for range rounds {
				lease := mustLock(t, l)
				if inside.Add(1) != 1 {
					t.Errorf("multi %d is not alone with y", i)
				}
				inside.Add(-1)
				mustUnlock(t, lease)
			}
		})
	}
	wg.Wait()
	srv.RequireTTLs(t)
}

// AC-83: one member is lost, the lease ends, the others are released.
func TestMulti_EndsWithTheFirstLost(t *testing.T) {
	srv := redistest.Start(t)
	m := managerOn(t, srv, holdfast.WithLease(600*time.Millisecond))
	lease := mustLock(t, multi(t, m.Mutex("a"), m.Mutex("b"), m.RWMutex("c")))
	ctx := lease.Context(t.Context())
	srv.Admin().Del(t.Context(), "b")
	select {
	case <-ctx.Done():
	case <-time.After(5 * time.Second):
		t.Fatal("nobody was told")
	}
	var lost *holdfast.LostError
	if !errors.As(context.Cause(ctx), &lost) || lost.Name != "b" || lease.Valid() {
		t.Errorf("cause %v, valid %v", context.Cause(ctx), lease.Valid())
	}
	if err := lease.Unlock(t.Context()); !errors.Is(err, holdfast.ErrLeaseLost) {
		t.Errorf("Unlock: %v", err)
	}
	eventually(t, "the others are released", func() bool { return len(srv.Keys()) == 0 })
}

func TestMulti_ExtendAndClose(t *testing.T) {
	srv := redistest.Start(t)
	m := managerOn(t, srv, holdfast.WithFixedLease(time.Second))
	lease := mustLock(t, multi(t, m.Mutex("a"), m.Mutex("b")))
	if err := lease.Extend(t.Context(), 20*time.Second); err != nil || time.Until(lease.Deadline()) < 19*time.Second {
		t.Errorf("Extend: %v, deadline in %v", err, time.Until(lease.Deadline()))
	}
	if err := m.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	<-lease.Done()
	if err := lease.Err(); !errors.Is(err, holdfast.ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
	srv.RequireNoKeys(t)
}

func ExampleNewMulti() {
	ctx := context.Background()
	m, done := newManager()
	defer done()
	transfer, err := holdfast.NewMulti(m.Mutex("account:7"), m.Mutex("account:3"))
	if err != nil {
		panic(err)
	}
	lease, err := transfer.Lock(ctx)
	if err != nil {
		panic(err)
	}
	fmt.Println(lease.Name())
	fmt.Println(lease.Unlock(ctx))
	// Output:
	// account:3+account:7
	// <nil>
}
