package demo

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/protocol"
	"github.com/holdfast-go/holdfast/internal/redistest"
	"github.com/holdfast-go/holdfast/internal/wire"
)

// patience bounds waits for what should happen soon.
const patience = redistest.Patience

// embedded starts an embedded server and returns n managers, each with a client of
// its own as n processes have.
func embedded(t *testing.T, n int, opts ...holdfast.Option) (*redis.Client, []*holdfast.Manager) {
	t.Helper()
	s, err := startServer()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.close)
	opt, err := parseURL(s.url())
	if err != nil {
		t.Fatal(err)
	}
	var rdb *redis.Client
	var managers []*holdfast.Manager
	for range n {
		rdb = redis.NewClient(opt)
		t.Cleanup(func() { _ = rdb.Close() })
		m, err := holdfast.New(rdb, opts...)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = m.Close(context.Background()) })
		managers = append(managers, m)
	}
	return rdb, managers
}

func mustLock(t *testing.T, m *holdfast.Mutex) *holdfast.Lease {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	lease, err := m.Lock(ctx)
	if err != nil {
		t.Fatalf("Lock() = %v", err)
	}
	return lease
}

func mustUnlock(t *testing.T, l *holdfast.Lease) {
	t.Helper()
	if err := l.Unlock(t.Context()); err != nil {
		t.Fatalf("Unlock() = %v", err)
	}
}

func TestServer_ReleaseWakesTheOtherProcess(t *testing.T) {
	t.Parallel()
	// No waiter asks for an hour: it takes a message to wake a waiter.
	_, ms := embedded(t, 2, holdfast.WithPollInterval(time.Hour), holdfast.WithFairPatience(time.Hour), holdfast.WithLease(time.Hour))
	first := mustLock(t, ms[0].Mutex("k"))
	second := ms[1].Mutex("k").LockAsync(t.Context())
	redistest.Eventually(t, patience, "a subscription", func() bool { return ms[1].Stats().Subscriptions == 1 })
	mustUnlock(t, first)
	select {
	case r := <-second:
		if r.Err != nil {
			t.Fatalf("LockAsync: %v", r.Err)
		}
		mustUnlock(t, r.Lease)
	case <-time.After(patience):
		t.Fatal("the release did not wake the waiter")
	}
}

func TestServer_TimePasses(t *testing.T) {
	t.Parallel()
	rdb, ms := embedded(t, 2)
	// A lock whose holder is gone: nothing but its TTL frees it.
	if err := rdb.HSet(t.Context(), "k", "dead", 1).Err(); err != nil {
		t.Fatal(err)
	}
	begun := time.Now()
	const ttl = 100 * time.Millisecond
	if err := rdb.PExpire(t.Context(), "k", ttl).Err(); err != nil {
		t.Fatal(err)
	}
	mustUnlock(t, mustLock(t, ms[0].Mutex("k")))
	if waited := time.Since(begun); waited < ttl {
		t.Errorf("a lock with a TTL of %v was free after %v", ttl, waited)
	}

	kept := mustLock(t, ms[0].Mutex("k", holdfast.WithLease(2*time.Second)))
	redistest.Eventually(t, patience, "three renewals", func() bool { return ms[0].Stats().Renewals >= 3 })
	if _, err := ms[1].Mutex("k").TryLock(t.Context()); !errors.Is(err, holdfast.ErrNotAcquired) {
		t.Errorf("TryLock() of a renewed lock = %v, want ErrNotAcquired", err)
	}
	mustUnlock(t, kept)
}

// What else the library's scripts do. An embedded server that differs from Redis here
// would make the demo lie.
func TestServer_RunsEveryScript(t *testing.T) {
	t.Parallel()
	rdb, ms := embedded(t, 2)
	ctx := t.Context()

	a := mustLock(t, ms[0].Mutex("f", holdfast.WithFencing()))
	mustUnlock(t, a)
	b := mustLock(t, ms[1].Mutex("f", holdfast.WithFencing()))
	if a.Token() == 0 || b.Token() <= a.Token() {
		t.Errorf("tokens %d, then %d", a.Token(), b.Token())
	}

	info, err := ms[0].Inspect(ctx, "f")
	if err != nil || !info.Held || info.TTL <= 0 || info.Token < b.Token() { // a late copy of the request counts on
		t.Errorf("Inspect() = %+v, %v; want held, with token %d or more", info, err, b.Token())
	}
	if freed, err := ms[0].ForceUnlock(ctx, "f"); err != nil || !freed {
		t.Errorf("ForceUnlock() = %t, %v", freed, err)
	}
	if err := b.Unlock(ctx); !errors.Is(err, holdfast.ErrLeaseLost) {
		t.Errorf("Unlock() after ForceUnlock = %v, want ErrLeaseLost", err)
	}

	if err := rdb.Set(ctx, "string", "x", 0).Err(); err != nil {
		t.Fatal(err)
	}
	if _, err := ms[0].Mutex("string").TryLock(ctx); !errors.Is(err, holdfast.ErrWrongKind) {
		t.Errorf("TryLock() of a string = %v, want ErrWrongKind", err)
	}
}

// A request whose reply never came leaves a tombstone. That takes a broken network, so
// this test calls the scripts itself.
func TestServer_BuriesWhatWasGivenUp(t *testing.T) {
	t.Parallel()
	rdb, _ := embedded(t, 1)
	k := wire.NewKeys("k")
	eval := func(script string, keys []any, args ...any) any {
		t.Helper()
		text := protocol.Text(script)
		var names []string
		for _, key := range keys {
			names = append(names, key.(string))
		}
		reply, err := rdb.Eval(t.Context(), text, names, args...).Result()
		if err != nil {
			t.Fatal(err)
		}
		return reply
	}
	released := eval("lock_release", []any{k.Lock, k.Queue, k.Deadlines, k.Tombstones}, "owner", "publish", protocol.Offer(1000, 1, true), 60000)
	if got, want := fmt.Sprint(released), "-1"; got != want {
		t.Errorf("release of a lock not held = %s, want %s", got, want)
	}
	if ttl := rdb.PTTL(t.Context(), k.Tombstones.(string)).Val(); ttl <= 0 || ttl > time.Minute {
		t.Errorf("the tombstone's TTL is %v", ttl)
	}
	late := eval("lock_acquire", []any{k.Lock, k.Queue, k.Deadlines, k.Tombstones}, "owner", 1000, protocol.Wait(protocol.Stand(protocol.NoPlace, false, 0), protocol.Offer(1000, 1, true), "publish"))
	if got, want := fmt.Sprint(late), "[-2]"; got != want {
		t.Errorf("late acquire = %s, want %s", got, want)
	}
}
