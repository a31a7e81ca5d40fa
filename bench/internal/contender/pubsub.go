package contender

import (
	"context"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

var (
	leaveAndTell = redis.NewScript(`if redis.call('hexists', KEYS[1], ARGV[1]) == 0 then return 0 end
if redis.call('hincrby', KEYS[1], ARGV[1], -1) == 0 then
	redis.call('del', KEYS[1])
	redis.call('publish', KEYS[2], '0')
end
return 1`)

	renewHash = redis.NewScript(`if redis.call('hexists', KEYS[1], ARGV[1]) == 1 then return redis.call('pexpire', KEYS[1], ARGV[2]) end return 0`)
)

// pubsubContender is the lock that people write by hand when they have read Redisson: a hash with messages and a watchdog, which is how Redisson does
// it: a waiter subscribes, tries again, and sleeps until a message comes or the lease
// it waits for has run out. A message wakes one waiter of each process, on one
// connection for all; the libraries of this kind in Go open one for each waiter. A
// message that is lost costs the rest of the lease, and the holder does not learn of a loss.
type pubsubContender struct {
	client *redis.Client
	lease  time.Duration
	sub    *redis.PubSub
	ended  chan struct{} // when the reader has

	mu    sync.Mutex
	bells map[string]*bell // guarded by mu
}

// bell wakes the waiters of a lock in this process.
type bell struct {
	waiters int           // guarded by pubsubContender.mu
	ready   chan struct{} // closed when subscribed
	ring    chan struct{}
}

func openPubsub(address string, lease time.Duration) (Contender, error) {
	c := &pubsubContender{
		client: redis.NewClient(&redis.Options{Addr: address}),
		lease:  lease,
		ended:  make(chan struct{}),
		bells:  make(map[string]*bell),
	}
	c.sub = c.client.Subscribe(context.Background())
	go c.listen()
	return c, nil
}

func (c *pubsubContender) listen() {
	defer close(c.ended)
	for m := range c.sub.ChannelWithSubscriptions() {
		switch m := m.(type) {
		case *redis.Subscription:
			c.mu.Lock()
			if b := c.bells[m.Channel]; b != nil && m.Kind == "subscribe" {
				select {
				case <-b.ready: // again, after the connection was lost
				default:
					close(b.ready)
				}
			}
			c.mu.Unlock()
		case *redis.Message:
			c.mu.Lock()
			if b := c.bells[m.Channel]; b != nil {
				select {
				case b.ring <- struct{}{}:
				default: // it has rung, and no caller has got up yet
				}
			}
			c.mu.Unlock()
		}
	}
}

func (c *pubsubContender) Lock(ctx context.Context, name string) (func(context.Context) error, error) {
	own := token()
	left, err := enter(ctx, c.client, name, own, c.lease)
	if err != nil {
		return nil, err
	}
	if left > 0 {
		if err := c.wait(ctx, name, own); err != nil {
			return nil, err
		}
	}
	return c.watch(name, own), nil
}

// wait returns when the caller has the lock.
func (c *pubsubContender) wait(ctx context.Context, name, own string) error {
	channel := "channel:" + name
	b, err := c.subscribe(ctx, channel)
	if err != nil {
		return err
	}
	defer c.unsubscribe(channel, b)
	select {
	case <-b.ready:
	case <-ctx.Done():
		return ctx.Err()
	}
	for {
		left, err := enter(ctx, c.client, name, own, c.lease)
		if err != nil || left == 0 {
			return err
		}
		timer := time.NewTimer(left)
		select {
		case <-b.ring:
			timer.Stop()
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return ctx.Err()
		}
	}
}

func (c *pubsubContender) subscribe(ctx context.Context, channel string) (*bell, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	b := c.bells[channel]
	if b == nil {
		if err := c.sub.Subscribe(ctx, channel); err != nil {
			return nil, err
		}
		b = &bell{ready: make(chan struct{}), ring: make(chan struct{}, 1)}
		c.bells[channel] = b
	}
	b.waiters++
	return b, nil
}

func (c *pubsubContender) unsubscribe(channel string, b *bell) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if b.waiters--; b.waiters == 0 {
		delete(c.bells, channel)
		_ = c.sub.Unsubscribe(context.Background(), channel) // a message too many does no harm
	}
}

// watch renews the lock every third of its lease until it is unlocked.
func (c *pubsubContender) watch(name, own string) func(context.Context) error {
	var (
		mu   sync.Mutex
		over bool
		dog  *time.Timer
	)
	mu.Lock()
	defer mu.Unlock()
	dog = time.AfterFunc(c.lease/3, func() {
		n, err := renewHash.Run(context.Background(), c.client, []string{name}, own, millis(c.lease)).Int64()
		mu.Lock()
		defer mu.Unlock()
		if lost := err == nil && n == 0; !over && !lost {
			dog.Reset(c.lease / 3)
		}
	})
	return func(ctx context.Context) error {
		mu.Lock()
		over = true
		dog.Stop()
		mu.Unlock()
		return owned(leaveAndTell.Run(ctx, c.client, []string{name, "channel:" + name}, own).Int64())
	}
}

func (c *pubsubContender) Close() {
	c.sub.Close()
	<-c.ended
	c.client.Close()
}
