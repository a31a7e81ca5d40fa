package contender

import (
	"context"
	"time"

	"github.com/bsm/redislock"
	"github.com/redis/go-redis/v9"
)

// redislockContender is bsm/redislock.
type redislockContender struct {
	client *redis.Client
	locker *redislock.Client
	lease  time.Duration
	opts   *redislock.Options
}

// openRedislock sets redislock up to try again after each pause until the context is
// done; by default it tries once. 100 ms is the example of its documentation; 1 ms is
// the better setting for few waiters. It has no renewal.
func openRedislock(pause time.Duration) func(string, time.Duration) (Contender, error) {
	return func(address string, lease time.Duration) (Contender, error) {
		client := redis.NewClient(&redis.Options{Addr: address})
		opts := &redislock.Options{RetryStrategy: redislock.LinearBackoff(pause)}
		return &redislockContender{client, redislock.New(client), lease, opts}, nil
	}
}

func (c *redislockContender) Lock(ctx context.Context, name string) (func(context.Context) error, error) {
	l, err := c.locker.Obtain(ctx, name, c.lease, c.opts)
	if err != nil {
		return nil, err
	}
	return l.Release, nil
}

func (c *redislockContender) Close() { c.client.Close() }
