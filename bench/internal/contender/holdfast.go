package contender

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
)

// Holdfast is Holdfast with default options but for those of its table line. Manager is
// for what no other library has.
type Holdfast struct {
	Manager *holdfast.Manager
	client  *redis.Client
	kind    kind
	latest  atomic.Pointer[handle]
}

// kind makes the handles of a kind of lock. The read side of a lock that has none is
// the lock itself.
type kind func(m *holdfast.Manager, name string) (write, read holdfast.Locker)

func mutexes(m *holdfast.Manager, name string) (write, read holdfast.Locker) {
	l := m.Mutex(name)
	return l, l
}

func fairMutexes(m *holdfast.Manager, name string) (write, read holdfast.Locker) {
	l := m.FairMutex(name)
	return l, l
}

func rwMutexes(m *holdfast.Manager, name string) (write, read holdfast.Locker) {
	l := m.RWMutex(name)
	return l, l.RLocker()
}

// handle is the lock handle of the name that was asked for last. A program keeps the
// handle of a lock that it uses all the time, and makes one for a name that comes out of
// its data; with this, scenarios of one name do the former and those of many names the
// latter.
type handle struct {
	name        string
	write, read holdfast.Locker
}

func openHoldfast(k kind, opts ...holdfast.Option) func(string, time.Duration) (Contender, error) {
	return func(address string, lease time.Duration) (Contender, error) {
		client := redis.NewClient(&redis.Options{Addr: address})
		opts := append([]holdfast.Option{holdfast.WithLease(lease), holdfast.WithLogger(slog.New(slog.DiscardHandler))}, opts...)
		manager, err := holdfast.New(client, opts...)
		if err != nil {
			client.Close()
			return nil, err
		}
		return &Holdfast{Manager: manager, client: client, kind: k}, nil
	}
}

func (c *Holdfast) handle(name string) handle {
	if h := c.latest.Load(); h != nil && h.name == name {
		return *h
	}
	h := handle{name: name}
	h.write, h.read = c.kind(c.Manager, name)
	c.latest.Store(&h)
	return h
}

// Lock is that of the write side.
func (c *Holdfast) Lock(ctx context.Context, name string) (func(context.Context) error, error) {
	return take(ctx, c.handle(name).write)
}

// RLock is that of the read side.
func (c *Holdfast) RLock(ctx context.Context, name string) (func(context.Context) error, error) {
	return take(ctx, c.handle(name).read)
}

func take(ctx context.Context, l holdfast.Locker) (func(context.Context) error, error) {
	lease, err := l.Lock(ctx)
	if err != nil {
		return nil, err
	}
	return lease.Unlock, nil
}

// Close closes the manager and its client.
func (c *Holdfast) Close() {
	c.Manager.Close(context.Background())
	c.client.Close()
}
