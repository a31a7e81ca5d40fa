package contender

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// leastGrant is what a release that grants the lock to another process cannot do without:
// the owner is looked at and replaced, with a TTL, and the other is told.
var leastGrant = redis.NewScript(`if redis.call('hdel', KEYS[1], ARGV[1]) == 0 then return 0 end
redis.call('hset', KEYS[1], ARGV[2], '1')
redis.call('pexpire', KEYS[1], ARGV[3])
redis.call('publish', ARGV[2], '')
return 1`)

// batonContender is no lock, but what no hand-off from process to process can be below:
// two of them pass a baton. Lock waits for the other's message, and Unlock sends one: by
// PUBLISH and nothing else, or by leastGrant. Each knows the other, who waits is written
// down nowhere, and the death of one is the end of it.
type batonContender struct {
	client *redis.Client
	lease  time.Duration
	grants bool // by leastGrant

	once       sync.Once
	fault      error
	first      bool // has the baton to begin with
	sub        *redis.PubSub
	messages   <-chan *redis.Message
	name       string
	own, other string // channels, and owner ids
}

func openMessage(address string, _ time.Duration) (Contender, error) {
	return &batonContender{client: redis.NewClient(&redis.Options{Addr: address})}, nil
}

func openGrant(address string, lease time.Duration) (Contender, error) {
	return &batonContender{client: redis.NewClient(&redis.Options{Addr: address}), lease: lease, grants: true}, nil
}

func (c *batonContender) Lock(ctx context.Context, name string) (func(context.Context) error, error) {
	if strings.HasPrefix(name, "warm:") { // no other process to pass it to
		return func(ctx context.Context) error { return c.client.Ping(ctx).Err() }, nil
	}
	if c.once.Do(func() { c.fault = c.meet(ctx, name) }); c.fault != nil {
		return nil, c.fault
	}
	if c.first {
		c.first = false
		return c.pass, nil
	}
	select {
	case <-c.messages:
		return c.pass, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// meet waits until the other listens as well.
func (c *batonContender) meet(ctx context.Context, name string) error {
	place, err := c.client.Incr(ctx, name+":places").Result()
	if err != nil {
		return err
	}
	if place > 2 {
		return fmt.Errorf("baton: for two, and this is number %d", place)
	}
	c.first = place == 1
	c.name, c.own, c.other = name, fmt.Sprint(name, ":", place), fmt.Sprint(name, ":", 3-place)
	if c.first && c.grants {
		if err := c.client.HSet(ctx, name, c.own, 1).Err(); err != nil {
			return err
		}
	}
	c.sub = c.client.Subscribe(ctx, c.own)
	if _, err := c.sub.Receive(ctx); err != nil {
		return err
	}
	c.messages = c.sub.Channel()
	for {
		n, err := c.client.PubSubNumSub(ctx, c.other).Result()
		if err != nil || n[c.other] > 0 {
			return err
		}
		time.Sleep(time.Millisecond)
	}
}

func (c *batonContender) pass(ctx context.Context) error {
	if !c.grants {
		return c.client.Publish(ctx, c.other, "").Err()
	}
	return owned(leastGrant.Run(ctx, c.client, []string{c.name}, c.own, c.other, millis(c.lease)).Int64())
}

func (c *batonContender) Close() {
	if c.sub != nil {
		_ = c.sub.Close()
	}
	c.client.Close()
}
