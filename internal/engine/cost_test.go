package engine_test

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"
	"unsafe"

	"github.com/redis/go-redis/v9"
	"golang.org/x/sync/errgroup"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/locktest"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

// What a pair allocates beyond its two commands through go-redis. The tests of this
// file do not run beside others, which would allocate and start goroutines as well.
func TestCost_AllocationsOfAPair(t *testing.T) {
	srv := redistest.Start(t)
	client := srv.Client(t)
	m := locktest.ManagerAsIs(t, client)
	ctx := context.Background()
	l := m.Mutex("allocs")
	pair := leastAllocs(func() {
		lease := locktest.Got(t, l.Lock, ctx)
		redistest.Must(t, lease.Unlock(ctx))
	})
	script := redis.NewScript("return redis.call('exists', KEYS[1])")
	script.Load(ctx, client)
	var args []any = []any{"evalsha", script.Hash(), 3, "a", "b", "c", "owner", "30000", "0", "0"}
	bare := leastAllocs(func() {
		for range 2 {
			pipe := client.Pipeline()
			_ = pipe.Process(ctx, redis.NewCmd(ctx, args...))
			_, _ = pipe.Exec(ctx)
		}
	})
	t.Logf("%.0f allocations for a pair, %.0f for two bare commands", pair, bare)
	if redistest.Raced() {
		return // the race detector allocates for itself
	}
	redistest.WantMost(t, pair-bare, 8, "%.0f allocations of our own")
}

// leastAllocs is what f allocates each time: the least of several series, because at first the manager
// opens spare connections in the background, whose allocations are those of hundreds of pairs.
func leastAllocs(f func()) float64 {
	least := testing.AllocsPerRun(200, f)
	for range 4 {
		least = min(least, testing.AllocsPerRun(200, f))
	}
	return least
}

// What a process keeps for each lock that it holds, beside the lease that the caller has, with names of nine bytes. bench measures the
// same (held).
func TestCost_HeldLockIsSmall(t *testing.T) {
	const locks, most = 10_000, 600
	m := locktest.ManagerOn(t, redistest.Start(t), holdfast.WithLease(time.Hour))
	names, leases := make([]string, locks), make([]*holdfast.Lease, locks)
	for i := range names {
		names[i] = fmt.Sprintf("held:%d", i)
	}
	lock := func(i int) {
		lease := locktest.Got(t, m.Mutex(names[i]).Lock, t.Context())
		leases[i] = lease
	}
	heap := func() uint64 {
		var s runtime.MemStats
		runtime.GC()
		runtime.GC() // what pools keep goes with the second
		runtime.ReadMemStats(&s)
		return s.HeapAlloc
	}
	const first = locks / 10
	for i := range first { // go-redis has opened its connections
		lock(i)
	}
	before := heap()
	for i := first; i < locks; i++ {
		lock(i)
	}
	got := float64(heap()-before)/(locks-first) - float64(unsafe.Sizeof(holdfast.Lease{}))
	t.Logf("%.0f B", got)
	if got > most && !redistest.Raced() {
		t.Errorf("a held lock takes %.0f B, want at most %d", got, most)
	}
	runtime.KeepAlive(leases)
}

func TestCost_ReentryIsLocal(t *testing.T) {
	srv := redistest.Start(t)
	m := locktest.ManagerAsIs(t, srv.Client(t))
	lease := locktest.Got(t, m.Mutex("reentry").Lock, context.Background())
	ctx := lease.Context(context.Background())
	l := m.Mutex("reentry")
	before := m.Stats().Commands
	allocs := testing.AllocsPerRun(1000, func() {
		inner := locktest.Got(t, l.Lock, ctx)
		_ = inner.Unlock(ctx)
	})
	redistest.Want(t, m.Stats().Commands-before, 0, "%d commands")
	if allocs > 2 && !redistest.Raced() {
		t.Errorf("%.0f allocations", allocs)
	}
}

// Ten thousand waiters and ten thousand holds: no goroutine for any of them.
func TestCost_GoroutinesDoNotGrow(t *testing.T) {
	srv := redistest.Start(t)
	holder := locktest.ManagerAsIs(t, srv.Client(t))
	m := locktest.ManagerAsIs(t, srv.Client(t))
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	held := locktest.Got(t, holder.Mutex("waited-for").Lock, ctx)
	before := runtime.NumGoroutine()
	const n = 10_000
	results := make([]<-chan holdfast.Result, n)
	for i := range results {
		results[i] = m.Mutex("waited-for").LockAsync(ctx)
	}
	var leases []*holdfast.Lease
	for i := range n {
		lease := locktest.Got(t, m.Mutex("held:"+time.Duration(i).String()).Lock, ctx)
		leases = append(leases, lease)
	}
	if d := runtime.NumGoroutine() - before; d > 100 { // lanes, of which a slow machine takes some for stuck, and no one for each of them
		buf := make([]byte, 1<<20)
		t.Errorf("%d goroutines more; %d of them lanes", d, strings.Count(string(buf[:runtime.Stack(buf, true)]), "(*lane).run"))
	}
	if s := m.Stats(); s.Held != n || s.Waiting != n {
		t.Errorf("%d held, %d waiting", s.Held, s.Waiting)
	}
	for _, l := range leases {
		locktest.MustUnlock(t, l)
	}
	locktest.MustUnlock(t, held)
	for _, r := range results {
		locktest.MustUnlock(t, locktest.Granted(t, r))
	}
}

// A lock that goes to and fro between processes leaves each inbox and comes back to it with every
// turn. That is no work for later, of which there would be some for every turn.
func TestCost_InboxIsLeftOnce(t *testing.T) {
	srv := redistest.Start(t)
	var managers []*holdfast.Manager
	group, ctx := errgroup.WithContext(t.Context())
	for range 2 {
		m := locktest.ManagerAsIs(t, srv.Client(t))
		managers = append(managers, m)
		l := m.Mutex("to and fro")
		group.Go(func() error {
			for range 300 {
				lease, err := l.Lock(ctx)
				if err != nil {
					return err
				}
				if n := locktest.Deserted(m); n > 2 { // the inbox, and the lock's channel
					return fmt.Errorf("%d channels are to be left", n)
				}
				if err := locktest.Unlock(lease); err != nil {
					return err
				}
			}
			return nil
		})
	}
	redistest.Check(t, group.Wait())
	redistest.Eventually(t, locktest.Patience, "the channels are left", func() bool {
		return managers[0].Stats().Subscriptions+managers[1].Stats().Subscriptions == 0
	})
}

// A pair of a lock that lingers is no command, and allocates no more than a lease.
func TestCost_LingeringIsLocal(t *testing.T) {
	srv := redistest.Start(t)
	ctx := context.Background()
	for kind, of := range map[string]func(*holdfast.Manager) holdfast.Locker{
		"mutex": func(m *holdfast.Manager) holdfast.Locker { return m.Mutex("mutex") },
		"write": func(m *holdfast.Manager) holdfast.Locker { return m.RWMutex("write") },
		"read":  func(m *holdfast.Manager) holdfast.Locker { return m.RWMutex("read").RLocker() },
	} {
		m := locktest.ManagerOn(t, srv, holdfast.WithLinger(time.Hour), holdfast.WithHandoffSlice(time.Hour)) // it does not ask who listens
		l := of(m)
		pair := func() {
			lease := locktest.Got(t, l.Lock, ctx)
			_ = lease.Unlock(ctx)
		}
		pair()
		redistest.Eventually(t, locktest.Patience, "it hears who wants it, and has asked", func() bool {
			return m.Stats().Subscriptions == 1 && locktest.Pending(m) == 0
		})
		before, began := m.Stats().Commands, time.Now()
		least := leastAllocs(pair)
		asked := 1 + uint64(time.Since(began)/time.Second) // a question as the inbox is heard, and on a slow machine one for each second
		if n := m.Stats().Commands - before; n > asked {   // of more than a thousand pairs
			t.Errorf("%s: %d commands, want at most %d", kind, n, asked)
		}
		if least > 2 && !redistest.Raced() {
			t.Errorf("%s: %.0f allocations", kind, least)
		}
	}
}

// Of too many locks that linger those go that have been idle for longest.
func TestCost_LingeringIsBounded(t *testing.T) {
	srv := redistest.Start(t)
	m := locktest.ManagerOn(t, srv, holdfast.WithLinger(time.Hour))
	const most, more = 10_000, 20
	for i := range most + more {
		locktest.MustUnlock(t, locktest.MustLock(t, m.Mutex(fmt.Sprint("lingers:", i))))
	}
	redistest.Eventually(t, locktest.Patience, "the oldest are given back", func() bool { return m.Stats().Held == most && locktest.Pending(m) == 0 })
	for l := range m.Locks() {
		var n int
		if _, err := fmt.Sscanf(l.Name, "lingers:%d", &n); err != nil || n < more {
			t.Errorf("%s is %s, and younger ones are not", l.Name, l.State)
		}
	}
}
