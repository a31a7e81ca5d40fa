package contender

import (
	"context"
	"errors"
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

// permits has a semaphore with one permit as its write side. The read side takes one of Permits.
func permits(m *holdfast.Manager, name string) (write, read holdfast.Locker) {
	return m.Semaphore(name+":one", 1).Locker(1), m.Semaphore(name, Permits).Locker(1)
}

// weighed takes all Permits of a semaphore to write, and one of them to read.
func weighed(m *holdfast.Manager, name string) (write, read holdfast.Locker) {
	s := m.Semaphore(name, Permits)
	return s.Locker(Permits), s.Locker(1)
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

// Refused is TryLock of the write side.
func (c *Holdfast) Refused(ctx context.Context, name string) error {
	switch lease, err := c.handle(name).write.TryLock(ctx); {
	case errors.Is(err, holdfast.ErrNotAcquired):
		return nil
	case err != nil:
		return err
	default:
		return errors.Join(errNotRefused, lease.Unlock(ctx))
	}
}

func take(ctx context.Context, l holdfast.Locker) (func(context.Context) error, error) {
	lease, err := l.Lock(ctx)
	if err != nil {
		return nil, err
	}
	return lease.Unlock, nil
}

// elections are Holdfast's: Lock is Campaign, and unlock is Resign.
type elections struct{ *Holdfast }

func openElection(address string, lease time.Duration) (Contender, error) {
	c, err := openHoldfast(mutexes)(address, lease)
	if err != nil {
		return nil, err
	}
	return elections{c.(*Holdfast)}, nil
}

func (c elections) Lock(ctx context.Context, name string) (func(context.Context) error, error) {
	term, err := c.Manager.Election(name).Campaign(ctx, "value")
	if err != nil {
		return nil, err
	}
	return term.Resign, nil
}

// tickets keep a lock taken all the time: unlock is Detach, and Lock is Attach with the last ticket of the name. It is for one caller.
type tickets struct {
	*Holdfast
	last map[string]string // by name
}

func openTicket(address string, lease time.Duration) (Contender, error) {
	c, err := openHoldfast(mutexes)(address, lease)
	if err != nil {
		return nil, err
	}
	return tickets{c.(*Holdfast), make(map[string]string)}, nil
}

func (c tickets) Lock(ctx context.Context, name string) (func(context.Context) error, error) {
	lock := c.handle(name).write.Lock
	if ticket, ok := c.last[name]; ok {
		lock = func(ctx context.Context) (*holdfast.Lease, error) { return c.Manager.Attach(ctx, ticket) }
	}
	lease, err := lock(ctx)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context) (err error) {
		c.last[name], err = lease.Detach(ctx, time.Minute)
		return err
	}, nil
}

// Close closes the manager and its client.
func (c *Holdfast) Close() {
	c.Manager.Close(context.Background())
	c.client.Close()
}
