package locktest

import (
	"context"
	"crypto/sha1" // what EVALSHA is defined with
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/protocol"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

// What tests share that are no scenarios: they run for one kind of lock, or for several locks, and make their servers
// themselves. A package of such tests gives the functions short names:
//
//	var mustLock = locktest.MustLock

// Patience is for what comes, or never does. Nothing that a test waits for comes by itself
// meanwhile: see endless.
const Patience = redistest.Patience

// endless is the lease of managers in tests that name none: a lock that is left behind stays, much longer than Patience.
const endless = 10 * time.Minute

// ManagerFor returns a manager on client that is closed with the test.
func ManagerFor(t testing.TB, client redis.UniversalClient, opts ...holdfast.Option) *holdfast.Manager {
	t.Helper()
	m := ManagerAsIs(t, client, append([]holdfast.Option{Unlogged, holdfast.WithLease(endless)}, opts...)...)
	return m
}

// ManagerAsIs is ManagerFor with the options alone, as a program has it.
func ManagerAsIs(t testing.TB, client redis.UniversalClient, opts ...holdfast.Option) *holdfast.Manager {
	t.Helper()
	m, err := holdfast.New(client, opts...)
	redistest.Must(t, err)
	t.Cleanup(func() { _ = m.Close(context.Background()) })
	return m
}

// ManagerOn returns a manager on srv that is closed with the test.
func ManagerOn(t testing.TB, srv *redistest.Server, opts ...holdfast.Option) *holdfast.Manager {
	t.Helper()
	return ManagerFor(t, srv.Client(t), opts...)
}

// ManagerVia returns a manager whose client goes through a proxy and is connected, and the proxy.
func ManagerVia(t testing.TB, srv *redistest.Server, opts ...holdfast.Option) (*holdfast.Manager, *redistest.Proxy) {
	t.Helper()
	p := srv.Proxy(t)
	return connected(t, p.Client(t), opts), p
}

// ManagerThatHangs is ManagerVia with a client that never gives up on an answer.
func ManagerThatHangs(t testing.TB, srv *redistest.Server, opts ...holdfast.Option) (*holdfast.Manager, *redistest.Proxy) {
	t.Helper()
	p := srv.Proxy(t)
	return connected(t, p.ClientWith(t, func(o *redis.Options) { o.ReadTimeout = time.Hour }), opts), p
}

func connected(t testing.TB, client redis.UniversalClient, opts []holdfast.Option) *holdfast.Manager {
	t.Helper()
	m := ManagerFor(t, client, opts...)
	MustUnlock(t, MustLock(t, m.Mutex("connected")))
	return m
}

// Unasked are options of managers whose callers find out nothing by asking.
var Unasked = []holdfast.Option{holdfast.WithPollInterval(time.Hour), holdfast.WithFairPatience(time.Hour)}

// Offline returns a client that no test may use: New and option checks do no I/O.
func Offline(t testing.TB) *redis.Client {
	c := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1"})
	t.Cleanup(func() { c.Close() })
	return c
}

// Got is what a call under a context of the test has got: Lock, or another one of its kind.
func Got(t testing.TB, lock func(context.Context) (*holdfast.Lease, error), ctx context.Context) *holdfast.Lease {
	t.Helper()
	lease, err := lock(ctx)
	redistest.Must(t, err)
	return lease
}

// MustLock takes l or fails.
func MustLock(t testing.TB, l holdfast.Locker) *holdfast.Lease {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), Patience)
	defer cancel()
	lease := Got(t, l.Lock, ctx)
	return lease
}

// Waits locks l in the background. The function that it returns waits for the lease.
func Waits(t testing.TB, l holdfast.Locker) func() *holdfast.Lease {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), Patience)
	got := Calls(l.Lock, ctx)
	return func() *holdfast.Lease {
		t.Helper()
		defer cancel()
		r := <-got
		if r.Err != nil {
			t.Fatal(r.Err)
		}
		return r.Lease
	}
}

// Calls calls lock, a Lock or TryLock, in the background.
func Calls(lock func(context.Context) (*holdfast.Lease, error), ctx context.Context) <-chan holdfast.Result {
	result := make(chan holdfast.Result, 1)
	go func() {
		lease, err := lock(ctx)
		result <- holdfast.Result{Lease: lease, Err: err}
	}()
	return result
}

// MustUnlock unlocks or fails.
func MustUnlock(t testing.TB, leases ...*holdfast.Lease) {
	t.Helper()
	for _, l := range leases {
		redistest.Must(t, Unlock(l))
	}
}

// ErrOf is the error of a call that returns another value as well.
func ErrOf[T any](_ T, err error) error { return err }

// MustExtend extends or fails.
func MustExtend(t testing.TB, l *holdfast.Lease, d time.Duration) {
	t.Helper()
	redistest.Must(t, UntilAnswered(func() error { return l.Extend(context.Background(), d) }))
}

// Unlock calls Unlock until Redis has answered it.
func Unlock(l *holdfast.Lease) error {
	return UntilAnswered(func() error { return l.Unlock(context.Background()) })
}

// StoodStill reports whether err is what a machine that stands still makes of a call that is in order: Redis has not
// answered in time, or a lease was not renewed by its deadline.
func StoodStill(err error) bool {
	var lost *holdfast.LostError
	return errors.Is(err, holdfast.ErrUnavailable) || errors.As(err, &lost) && lost.Reason == holdfast.LostDeadline
}

// AtLast plays try until it succeeds: in fake time at once, and on a real server within Patience, since a machine
// can stand still for longer than the library waits. Each try makes managers of its own, so that it inherits no trouble. Any
// outcome that this does not explain ends the test.
func AtLast(t testing.TB, try func() error) {
	t.Helper()
	for end := time.Now().Add(Patience); ; {
		err := try()
		if err == nil {
			return
		}
		if testing.Short() || !StoodStill(err) || time.Now().After(end) {
			t.Fatal(err)
		}
		t.Logf("again: %v", err)
	}
}

// Inspected returns what Inspect of m says of a lock.
func Inspected(t testing.TB, m *holdfast.Manager, name string) (info holdfast.Info) {
	t.Helper()
	err := UntilAnswered(func() (err error) { info, err = m.Inspect(context.Background(), name); return err })
	redistest.Must(t, err)
	return info
}

// UntilAnswered calls ask until it returns anything but ErrUnavailable: a machine may stand still for longer than
// the second in which Redis has to answer.
func UntilAnswered(ask func() error) error {
	for end := time.Now().Add(Patience); ; {
		err := ask()
		if !errors.Is(err, holdfast.ErrUnavailable) || time.Now().After(end) {
			return err
		}
		time.Sleep(2 * time.Millisecond) // a caller that is denied gets its answer at once
	}
}

// Works makes a call that is in order: once in fake time, and on a real server until it is answered.
func Works(t testing.TB, call func() error) {
	t.Helper()
	if !testing.Short() {
		patiently := call
		call = func() error { return UntilAnswered(patiently) }
	}
	redistest.Must(t, call())
}

// WantErr fails unless err matches is, and does not match not; nil: it may match anything else.
func WantErr(t testing.TB, err error, is, not error) {
	t.Helper()
	if !errors.Is(err, is) || not != nil && errors.Is(err, not) {
		t.Errorf("%v, want %v and not %v", err, is, not)
	}
}

// AwaitWaiters waits until n wait for a lock in Redis.
func AwaitWaiters(t testing.TB, m *holdfast.Manager, name string, n int) {
	t.Helper()
	redistest.Eventually(t, Patience, "callers wait for "+name, func() bool {
		info, err := m.Inspect(t.Context(), name)
		return err == nil && info.Waiters == n
	})
}

// MustForceUnlock frees a lock that is held or fails.
func MustForceUnlock(t testing.TB, m *holdfast.Manager, name string) {
	t.Helper()
	freed, err := m.ForceUnlock(t.Context(), name)
	redistest.Must(t, err)
	redistest.Want(t, freed, true, name+" was held: %t, want %t")
}

// LastingKeys returns the keys on srv without tombstones: a request that a slow machine has delayed leaves one.
func LastingKeys(srv *redistest.Server) []string {
	return slices.DeleteFunc(srv.Keys(), func(key string) bool { return strings.HasPrefix(key, Tombstones) })
}

// Queued waits until n callers stand in a queue.
func Queued(t testing.TB, srv *redistest.Server, queue string, n int64) {
	t.Helper()
	redistest.Eventually(t, Patience, "they stand in the queue", func() bool { return srv.Admin().LLen(t.Context(), queue).Val() == n })
}

// InboxHeard waits until one process hears its inbox.
func InboxHeard(t testing.TB, srv *redistest.Server) {
	t.Helper()
	redistest.Eventually(t, Patience, "the inbox is heard", func() bool {
		return len(srv.Admin().PubSubChannels(t.Context(), "holdfast_inbox:*").Val()) == 1
	})
}

// ScriptOn matches calls of scripts whose first key is key: of the named ones, or of any.
func ScriptOn(key string, names ...string) redistest.Match {
	var texts, digests []string
	for _, name := range names {
		text := protocol.Text(name)
		texts, digests = append(texts, text), append(digests, fmt.Sprintf("%x", sha1.Sum([]byte(text))))
	}
	return func(cmd []string) bool {
		keys, _, ok := redistest.ScriptCall(cmd)
		return ok && len(keys) > 0 && keys[0] == key &&
			(len(names) == 0 || slices.Contains(texts, cmd[1]) || slices.Contains(digests, cmd[1]))
	}
}

// JoinOn matches the requests that put waiters into the queue of the fair lock key.
func JoinOn(key string) redistest.Match { return ScriptOn(key, "join") }

// ReleaseOn matches the requests that release the mutex or fair lock key.
func ReleaseOn(key string) redistest.Match { return ScriptOn(key, "lock_release") }

// Visit is how long callers stay inside in Alone, about a round trip: long enough to meet another.
const Visit = 500 * time.Microsecond

// Alone takes locks that exclude each other in loops, each in a goroutine of its own. It
// fails if two are held at a time, if one does not get on, or none for a while.
func Alone(t *testing.T, rounds int, locks ...holdfast.Locker) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*Patience)
	defer cancel()
	var inside atomic.Int32
	var mu sync.Mutex // guards the following
	var longest time.Duration
	last := time.Now() // when a caller last came in
	var wg sync.WaitGroup
	for i, l := range locks {
		wg.Go(func() {
			for round := range rounds {
				lease, err := l.Lock(ctx)
				if err != nil {
					t.Errorf("%d in round %d: %v", i, round, err)
					return
				}
				if inside.Add(1) != 1 && (testing.Short() || lease.Valid()) { // a machine can stand still for a lease
					t.Errorf("%d in round %d is not alone", i, round)
				}
				mu.Lock()
				now := time.Now()
				longest, last = max(longest, now.Sub(last)), now
				mu.Unlock()
				<-time.After(rand.N(Visit))
				inside.Add(-1)
				if err := Unlock(lease); err != nil && (testing.Short() || !StoodStill(err)) {
					t.Errorf("%d in round %d: %v", i, round, err)
				}
			}
		})
	}
	wg.Wait()
	t.Logf("longest time without a grant: %v", longest)
	redistest.WantMost(t, longest, Patience, "no caller got the lock for %v")
}

// Granted waits for the lease of a caller.
func Granted(t testing.TB, r <-chan holdfast.Result) *holdfast.Lease {
	t.Helper()
	got := <-r
	if got.Err != nil {
		t.Fatal(got.Err)
	}
	return got.Lease
}

// SpareConnections waits until a client has connections to spare for pipelines. The library opens some in the background, but on a
// slow machine one is free again before the next is wanted, so that there is one for all.
func SpareConnections(t testing.TB, client *redis.Client) {
	t.Helper()
	redistest.Eventually(t, Patience, "there are spare connections", func() bool {
		var all sync.WaitGroup
		for range 8 {
			all.Go(func() {
				pipe := client.Pipeline()
				pipe.Ping(context.Background())
				_, _ = pipe.Exec(context.Background())
			})
		}
		all.Wait()
		return client.PoolStats().PipelineStats.IdleConns > 2
	})
}
