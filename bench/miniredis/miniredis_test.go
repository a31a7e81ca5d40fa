// Package miniredis has the test that the whole API works on miniredis, which many programs are tested with.
package miniredis

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/locktest"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

const patience = 30 * time.Second

// start returns a server, and a manager on it for each of n processes.
func start(t *testing.T, n int, opts ...holdfast.Option) (*miniredis.Miniredis, []*holdfast.Manager) {
	t.Helper()
	server := miniredis.RunT(t)
	server.ClockTTL(true)
	var managers []*holdfast.Manager
	for range n {
		client := redis.NewClient(&redis.Options{Addr: server.Addr()})
		t.Cleanup(func() { client.Close() })
		managers = append(managers, locktest.ManagerAsIs(t, client, opts...))
	}
	return server, managers
}

func within(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	return ctx
}

func refused(t *testing.T, lease *holdfast.Lease, err error) {
	t.Helper()
	if lease != nil || !errors.Is(err, holdfast.ErrNotAcquired) {
		t.Errorf("taken by another: %v, %v", lease, err)
	}
}

// Each kind excludes the other process, lets a waiter of it in by a message, keeps tokens and re-enters.
func TestMiniredis_Kinds(t *testing.T) {
	for name, of := range map[string]func(*holdfast.Manager, ...holdfast.LockOption) holdfast.Locker{
		"mutex": func(m *holdfast.Manager, o ...holdfast.LockOption) holdfast.Locker { return m.Mutex("x", o...) },
		"fair":  func(m *holdfast.Manager, o ...holdfast.LockOption) holdfast.Locker { return m.FairMutex("x", o...) },
		"write": func(m *holdfast.Manager, o ...holdfast.LockOption) holdfast.Locker { return m.RWMutex("x", o...) },
		"read": func(m *holdfast.Manager, o ...holdfast.LockOption) holdfast.Locker {
			return m.RWMutex("x", o...).RLocker()
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx := within(t)
			// A waiter asks by itself after an hour: it takes a message to wake it.
			server, ms := start(t, 2, holdfast.WithPollInterval(time.Hour), holdfast.WithFairPatience(time.Hour), holdfast.WithLease(time.Hour))
			here, there := of(ms[0], holdfast.WithFencing()), of(ms[1], holdfast.WithFencing())
			first := locktest.Got(t, here.TryLock, ctx)
			again := locktest.Got(t, here.Lock, first.Context(ctx))
			if again.Token() != first.Token() || first.Token() == 0 {
				t.Errorf("tokens %d and %d of one owner", first.Token(), again.Token())
			}
			locktest.MustUnlock(t, again)
			if name == "read" { // what a writer of another process waits for
				locktest.Got(t, there.TryLock, ctx).Unlock(ctx)
				there = ms[1].RWMutex("x", holdfast.WithFencing())
			}
			lease, err := there.TryLock(ctx)
			refused(t, lease, err)
			waiting := locktest.Calls(there.Lock, ctx)
			redistest.Eventually(t, patience, "a waiter stands in the queue", func() bool {
				return ms[1].Stats().Subscriptions > 0 && locktest.Inspected(t, ms[0], "x").Waiters > 0
			})
			locktest.MustUnlock(t, first)
			second := locktest.Granted(t, waiting)
			if second.Token() <= first.Token() {
				t.Errorf("token %d after token %d", second.Token(), first.Token())
			}
			locktest.MustUnlock(t, second)
			redistest.Want(t, server.Exists("x"), false, "the lock is left behind: %t")
		})
	}
}

// Readers share, a writer becomes a reader, and a reader does not become a writer.
func TestMiniredis_Downgrade(t *testing.T) {
	ctx := within(t)
	_, ms := start(t, 2)
	write := locktest.Got(t, ms[0].RWMutex("x").Lock, ctx)
	read := locktest.Got(t, ms[0].RWMutex("x").RLock, write.Context(ctx))
	lease, err := ms[1].RWMutex("x").TryRLock(ctx)
	refused(t, lease, err)
	locktest.MustUnlock(t, write)
	other := locktest.Got(t, ms[1].RWMutex("x").TryRLock, ctx)
	_, err = ms[0].RWMutex("x").TryLock(read.Context(ctx))
	locktest.WantErr(t, err, holdfast.ErrWouldDeadlock, nil)
	if info, err := ms[0].Inspect(ctx, "x"); err != nil || info.Kind != holdfast.KindRead || len(info.Holders) != 2 {
		t.Errorf("Inspect: %+v, %v", info, err)
	}
	locktest.MustUnlock(t, read, other)
}

func TestMiniredis_Several(t *testing.T) {
	ctx := within(t)
	_, ms := start(t, 2)
	multi, err := holdfast.NewMulti(ms[0].Mutex("a"), ms[0].FairMutex("b"), ms[0].RWMutex("c"), ms[0].Mutex("d"))
	redistest.Must(t, err)
	lease := locktest.Got(t, multi.Lock, ctx)
	for _, l := range []holdfast.Locker{ms[1].Mutex("a"), ms[1].FairMutex("b"), ms[1].RWMutex("c").RLocker(), ms[1].Mutex("d")} {
		lease, err := l.TryLock(ctx)
		refused(t, lease, err)
	}
	locktest.MustUnlock(t, lease)
	locktest.MustUnlock(t, locktest.Got(t, multi.TryLock, ctx))

	var members, others []holdfast.Locker
	for range 3 {
		_, ms := start(t, 2)
		members, others = append(members, ms[0].Mutex("r")), append(others, ms[1].Mutex("r"))
	}
	here, err := holdfast.NewRedlock(members...)
	redistest.Must(t, err)
	there, err := holdfast.NewRedlock(others...)
	redistest.Must(t, err)
	lease = locktest.Got(t, here.Lock, ctx)
	lost, err := there.TryLock(ctx)
	refused(t, lost, err)
	locktest.MustUnlock(t, lease)
	locktest.MustUnlock(t, locktest.Got(t, there.Lock, ctx))
}

func TestMiniredis_Leases(t *testing.T) {
	ctx := within(t)
	_, ms := start(t, 2, holdfast.WithIdentity("shop"))

	fixed := locktest.Got(t, ms[0].Mutex("x", holdfast.WithFixedLease(time.Minute)).Lock, ctx)
	if err := fixed.Extend(ctx, time.Hour); err != nil || time.Until(fixed.Deadline()) < time.Minute {
		t.Errorf("Extend: %v, until %v", err, fixed.Deadline())
	}
	var info holdfast.Info
	for { // a process writes who it is beside its first locks
		var err error
		if info, err = ms[1].Inspect(ctx, "x"); err != nil || !info.Held || len(info.Holders) != 1 {
			t.Fatalf("Inspect: %+v, %v", info, err)
		}
		if who := info.Holders[0].Identity; who != nil {
			if who.App != "shop" {
				t.Errorf("Identity: %+v", who)
			}
			break
		}
	}
	if freed, err := ms[1].ForceUnlockOf(ctx, "x", info.Holders[0].Owner); err != nil || !freed {
		t.Errorf("ForceUnlockOf: %t, %v", freed, err)
	}
	locktest.WantErr(t, fixed.Unlock(ctx), holdfast.ErrLeaseLost, nil)

	// A renewal finds out that the lock has been taken away.
	renewed := locktest.Got(t, ms[0].Mutex("x", holdfast.WithLease(300*time.Millisecond)).Lock, ctx)
	locktest.MustForceUnlock(t, ms[1], "x")
	redistest.Next(t, renewed.Done(), "the loss was not noticed")

	// A crashed owner's lock ends with its TTL.
	locktest.Got(t, ms[0].Mutex("x", holdfast.WithFixedLease(100*time.Millisecond)).Lock, ctx)
	locktest.MustUnlock(t, locktest.Got(t, ms[1].Mutex("x").Lock, ctx))

	// It stays taken after Unlock.
	locktest.MustUnlock(t, locktest.Got(t, ms[0].Mutex("job", holdfast.WithHoldAtLeast(time.Hour), holdfast.WithLease(2*time.Hour)).Lock, ctx))
	lease, err := ms[1].Mutex("job").TryLock(ctx)
	refused(t, lease, err)

	// A process keeps it after Unlock, and gives it up to another one.
	lingering := ms[0].Mutex("kept", holdfast.WithLinger(time.Hour))
	locktest.MustUnlock(t, locktest.Got(t, lingering.Lock, ctx))
	before := ms[0].Stats().Commands
	locktest.MustUnlock(t, locktest.Got(t, lingering.Lock, ctx))
	if more := ms[0].Stats().Commands - before; more > 1 { // a look at the queue, which comes once a second
		t.Errorf("%d commands for a lock that the process has kept", more)
	}
	locktest.MustUnlock(t, locktest.Got(t, ms[1].Mutex("kept", holdfast.WithLinger(time.Hour)).Lock, ctx))
}

// docs/TESTING.md has it. Close releases what is held, and an outage is an error.
func TestMiniredis_CloseAndOutage(t *testing.T) {
	ctx := within(t)
	server := miniredis.RunT(t)
	server.ClockTTL(true)
	client := redis.NewClient(&redis.Options{Addr: server.Addr()})
	defer client.Close()
	locks, err := holdfast.New(client)
	if err != nil {
		t.Fatal(err)
	}
	defer locks.Close(t.Context())
	closed, err := holdfast.New(client)
	redistest.Must(t, err)
	held := locktest.Got(t, closed.RWMutex("x").Lock, ctx)
	redistest.Check(t, closed.Close(ctx))
	locktest.WantErr(t, held.Err(), holdfast.ErrClosed, nil)
	lease := locktest.Got(t, locks.RWMutex("x").TryLock, ctx)
	server.Close()
	_, err = locks.Mutex("y").TryLock(ctx)
	locktest.WantErr(t, err, holdfast.ErrUnavailable, nil)
	redistest.Must(t, server.Restart())
	if info, err := locks.Inspect(ctx, "x"); err != nil || !info.Held {
		t.Errorf("after the restart: %+v, %v", info, err)
	}
	locktest.MustUnlock(t, lease)
}
