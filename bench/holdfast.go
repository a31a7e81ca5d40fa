package bench

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
)

// holdfastContender is Holdfast with default options.
type holdfastContender struct {
	client  *redis.Client
	manager *holdfast.Manager
	first   atomic.Pointer[handle]
}

// handle is the lock handle of the first name that was asked for. A program keeps
// the handle of a lock that it uses all the time, and makes one for a name that
// comes out of its data; with this, scenarios of one name do the former and those of
// many names the latter.
type handle struct {
	name  string
	mutex *holdfast.Mutex
}

func openHoldfast(address string, lease time.Duration) (contender, error) {
	client := redis.NewClient(&redis.Options{Addr: address})
	manager, err := holdfast.New(client, holdfast.WithLease(lease))
	if err != nil {
		client.Close()
		return nil, err
	}
	return &holdfastContender{client: client, manager: manager}, nil
}

func (c *holdfastContender) mutex(name string) *holdfast.Mutex {
	h := c.first.Load()
	if h != nil && h.name == name {
		return h.mutex
	}
	m := c.manager.Mutex(name)
	if h == nil {
		c.first.CompareAndSwap(nil, &handle{name, m})
	}
	return m
}

func (c *holdfastContender) Lock(ctx context.Context, name string) (func(context.Context) error, error) {
	l, err := c.mutex(name).Lock(ctx)
	if err != nil {
		return nil, err
	}
	return l.Unlock, nil
}

func (c *holdfastContender) Close() {
	c.manager.Close(context.Background())
	c.client.Close()
}
