package main

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"
)

var (
	enterReader = redis.NewScript(`
if redis.call('exists', KEYS[2]) == 1 then return 0 end
redis.call('incr', KEYS[1])
return 1`)
	enterWriter = redis.NewScript(`
redis.call('set', KEYS[2], 'waits', 'px', ARGV[1])
if tonumber(redis.call('get', KEYS[1]) or 0) > 0 then return 0 end
return 1`)
)

// counted is the read-write lock that one writes first: a counter of readers, and a flag that keeps new ones out while a writer waits or
// writes. Nothing says which reader a unit of the counter belongs to. So the unit of a reader that died stays, and the writer waits.
type counted struct {
	client *redis.Client
	keys   []string
}

func (c *counted) read(ctx context.Context, fn func(context.Context) error) error {
	if err := c.enter(ctx, enterReader); err != nil {
		return err
	}
	defer c.client.Decr(context.WithoutCancel(ctx), c.keys[0])
	return fn(ctx)
}

func (c *counted) write(ctx context.Context, fn func(context.Context) error) error {
	if err := c.enter(ctx, enterWriter); err != nil {
		return err
	}
	defer c.client.Del(context.WithoutCancel(ctx), c.keys[1])
	return fn(ctx)
}

func (c *counted) enter(ctx context.Context, s *redis.Script) error {
	for {
		entered, err := s.Run(ctx, c.client, c.keys, time.Second.Milliseconds()).Bool()
		if err != nil || entered {
			return err
		}
		select {
		case <-time.After(10 * time.Millisecond):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
