package locktest

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

// Env is one scenario's surroundings: a server of its own, managers, a lock name.
type Env struct {
	*testing.T
	Key  string // the name of the lock, and its key
	kind Kind
	srv  *redistest.Server

	mu       sync.Mutex
	managers []*holdfast.Manager // guarded by mu
}

// Server returns the scenario's server, started at the first call. An AOF server keeps
// its data over restarts.
func (e *Env) Server(opts ...redistest.ServerOption) *redistest.Server {
	if e.srv == nil {
		start := redistest.Start
		if e.kind.Virtual {
			start = redistest.StartVirtual
		}
		e.srv = start(e, opts...)
	}
	return e.srv
}

// Manager returns a new manager on a client of its own with default options.
func (e *Env) Manager(opts ...holdfast.Option) *holdfast.Manager {
	return e.ManagerOn(e.client(e.Server().Options()), opts...)
}

// Via returns a new manager whose client goes through a proxy, and the proxy.
func (e *Env) Via(opts ...holdfast.Option) (*holdfast.Manager, *redistest.Proxy) {
	p := e.Server().Proxy(e)
	return e.ManagerOn(e.client(p.Options()), opts...), p
}

// tick is for loops that only pass a lock on inside the process: in fake time that takes none, and the clock stands
// while any goroutine runs.
func (e *Env) tick() {
	if e.kind.Virtual {
		time.Sleep(100 * time.Microsecond)
	}
}

// client returns a new client of the kind's class, closed at the end.
func (e *Env) client(opt *redis.Options) redis.UniversalClient {
	var c redis.UniversalClient
	if e.kind.Client != nil {
		c = e.kind.Client(opt)
	} else {
		c = redis.NewClient(opt)
	}
	e.Cleanup(func() { _ = c.Close() })
	return c
}

// ManagerOn returns a new manager on client, closed at the end.
func (e *Env) ManagerOn(client redis.UniversalClient, opts ...holdfast.Option) *holdfast.Manager {
	e.Helper()
	// The suite speaks for Redisson with plain messages; sharded ones have tests of their own.
	all := append([]holdfast.Option{Unlogged, holdfast.WithLease(lease), holdfast.WithPublishMode(holdfast.PublishClassic)}, e.kind.Options...)
	m, err := holdfast.New(client, append(all, opts...)...)
	redistest.Must(e, err)
	e.mu.Lock()
	e.managers = append(e.managers, m)
	e.mu.Unlock()
	e.Cleanup(func() {
		ctx, cancel := context.WithTimeout(bg, patience)
		defer cancel()
		_ = m.Close(ctx) // scenarios that care close it themselves
	})
	return m
}

// Lock returns the scenario's lock as m sees it.
func (e *Env) Lock(m *holdfast.Manager, opts ...holdfast.LockOption) holdfast.Locker {
	return e.kind.Lock(m, e.Key, opts...)
}

// MustLock takes the lock or fails.
func (e *Env) MustLock(l holdfast.Locker) *holdfast.Lease {
	e.Helper()
	ctx, cancel := context.WithTimeout(bg, patience)
	defer cancel()
	got, err := l.Lock(ctx)
	if err != nil {
		e.Fatalf("Lock: %v", err)
	}
	return got
}

// Locking locks in a goroutine. Where that fails it says so, and there is no lease.
func (e *Env) Locking(l holdfast.Locker) <-chan *holdfast.Lease {
	got := make(chan *holdfast.Lease, 1)
	go func() {
		ctx, cancel := context.WithTimeout(bg, patience)
		defer cancel()
		lease, err := l.Lock(ctx)
		if err != nil {
			e.Errorf("Lock: %v", err)
		}
		got <- lease
	}()
	return got
}

// MustUnlock unlocks or fails. A machine may be too slow for the second that Unlock
// waits; the release goes on, and the next Unlock tells how it has ended. One that stood still may have
// lost the lease.
func (e *Env) MustUnlock(leases ...*holdfast.Lease) {
	e.Helper()
	for _, l := range leases {
		if l == nil {
			e.FailNow() // Locking has said why
		}
		var err error
		e.Eventually("Unlock is told", func() bool {
			err = l.Unlock(bg)
			return !errors.Is(err, holdfast.ErrUnavailable)
		})
		if e.excused(err) {
			e.Logf("Unlock: %v", err)
		} else if err != nil {
			e.Fatalf("Unlock: %v", err)
		}
	}
}

// TryLock calls TryLock of l until Redis has answered it.
func (e *Env) TryLock(l holdfast.Locker) (*holdfast.Lease, error) {
	e.Helper()
	return answered(e, func() (*holdfast.Lease, error) { return l.TryLock(bg) })
}

// Inspect calls Inspect of m with the scenario's name until Redis has answered it.
func (e *Env) Inspect(m *holdfast.Manager) (holdfast.Info, error) {
	e.Helper()
	return answered(e, func() (holdfast.Info, error) { return m.Inspect(bg, e.Key) })
}

// ForceUnlock calls ForceUnlock of m with the scenario's name until Redis has answered it. A call
// whose answer was late may be the one that freed the lock.
func (e *Env) ForceUnlock(m *holdfast.Manager) (freed bool, err error) {
	e.Helper()
	held := e.srv.Admin().Exists(bg, e.Key).Val() == 1
	late := false
	freed, err = answered(e, func() (bool, error) {
		freed, err := m.ForceUnlock(bg, e.Key)
		late = late || errors.Is(err, holdfast.ErrUnavailable)
		return freed, err
	})
	return freed || late && held && err == nil, err
}

// answered calls ask until it returns anything but ErrUnavailable, for as long as patience: the
// library gives Redis a second, and a machine may stand still for longer.
func answered[T any](e *Env, ask func() (T, error)) (got T, err error) {
	e.Helper()
	e.Eventually("Redis answers", func() bool {
		got, err = ask()
		return !errors.Is(err, holdfast.ErrUnavailable)
	})
	return got, err
}

// HeldByRedisson makes the named lock one that a client of Redisson holds, until the
// function it returns releases it as Redisson does.
func (e *Env) HeldByRedisson(name string) (release func()) {
	e.Helper()
	admin := e.Server().Admin()
	const owner = "5c6a0a3c-0f5e-4a37-9f1f-0d8f9c6b1a11:63"
	fields, message := []any{owner, 1}, "0"
	if e.kind.Write {
		fields, message = []any{"mode", "write", owner + ":write", 1}, "1"
	}
	redistest.Must(e, admin.HSet(bg, name, fields...).Err())
	admin.PExpire(bg, name, time.Hour)
	return func() {
		admin.Del(bg, name)
		admin.Publish(bg, e.Channel(name), message)
	}
}

// Tombstones is the prefix of the keys that refuse late copies of a request.
const Tombstones = "holdfast_tombstones:"

// Tokens is the prefix of the fencing counters, the only keys without TTL.
const Tokens = "redisson_lock_token:"

// Channel is the channel on which Redisson announces releases of the named lock, which
// has no braces in its name.
func (e *Env) Channel(name string) string {
	if e.kind.Write {
		return "redisson_rwlock:{" + name + "}"
	}
	if e.kind.Permits {
		return "redisson_sc:{" + name + "}"
	}
	return Channel(name)
}

// Channel is that of a mutex.
func Channel(name string) string { return "redisson_lock__channel:{" + name + "}" }
