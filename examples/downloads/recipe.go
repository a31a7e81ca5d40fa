package main

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"
)

// counter is the semaphore that one writes first: a number that each download increments and decrements. Nothing says which process a
// unit of it belongs to. So the units of a process that died stay, and fewer downloads are possible from then on.
type counter struct {
	client *redis.Client
	key    string
}

func (c *counter) with(ctx context.Context, fn func(context.Context) error) error {
	for {
		n, err := c.client.Incr(ctx, c.key).Result()
		if err != nil {
			return err
		}
		if n <= atOnce {
			defer c.client.Decr(context.WithoutCancel(ctx), c.key)
			return fn(ctx)
		}
		c.client.Decr(ctx, c.key)
		select {
		case <-time.After(10 * time.Millisecond):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
