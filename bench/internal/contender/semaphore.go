package contender

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/go-redsync/redsync/v4"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/redis/go-redis/v9"
	"golang.org/x/sync/semaphore"
)

// Permits is how many a semaphore has whose permits are shared. The exclusive side of Permit is a semaphore with one.
const Permits = 8

// poll tries once each millisecond, for libraries whose callers do not wait.
func poll(ctx context.Context, try func() (unlock func(context.Context) error, err error)) (func(context.Context) error, error) {
	for {
		if unlock, err := try(); unlock != nil || err != nil {
			return unlock, err
		}
		select {
		case <-time.After(time.Millisecond):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// asynqRate is the Semaphore of github.com/hibiken/asynq/x/rate: its script and its ZREM. The package itself takes the name of the
// holder from the context that asynq gives to a task, which no other program can make. It neither waits nor renews.
type asynqRate struct {
	client *redis.Client
	lease  time.Duration
}

var asynqAcquire = redis.NewScript(`
redis.call("ZREMRANGEBYSCORE", KEYS[1], "-inf", tonumber(ARGV[2])-1)
local count = redis.call("ZCARD", KEYS[1])
if (count < tonumber(ARGV[1])) then
     redis.call("ZADD", KEYS[1], ARGV[3], ARGV[4])
     return 'true'
else
     return 'false'
end`)

func openAsynqRate(address string, lease time.Duration) (Contender, error) {
	return &asynqRate{redis.NewClient(&redis.Options{Addr: address}), lease}, nil
}

func (c *asynqRate) Lock(ctx context.Context, name string) (func(context.Context) error, error) {
	return c.acquire(ctx, name+":one", 1)
}

func (c *asynqRate) RLock(ctx context.Context, name string) (func(context.Context) error, error) {
	return c.acquire(ctx, name, Permits)
}

func (c *asynqRate) acquire(ctx context.Context, name string, most int) (func(context.Context) error, error) {
	own := token()
	return poll(ctx, func() (func(context.Context) error, error) {
		ok, err := c.try(ctx, name, most, own)
		if err != nil || !ok {
			return nil, err
		}
		return func(ctx context.Context) error { return owned(c.client.ZRem(ctx, name, own).Result()) }, nil
	})
}

func (c *asynqRate) try(ctx context.Context, name string, most int, own string) (bool, error) {
	now := time.Now()
	return asynqAcquire.Run(ctx, c.client, []string{name}, most, now.Unix(), now.Add(c.lease).Unix(), own).Bool()
}

func (c *asynqRate) Refused(ctx context.Context, name string) error {
	ok, err := c.try(ctx, name+":one", 1, token())
	if ok {
		return errNotRefused
	}
	return err
}

func (c *asynqRate) Close() { c.client.Close() }

// redsyncNames has a Mutex of redsync for each permit, as programs do whose library has no semaphore: a caller tries all of them, and
// begins at a random one.
type redsyncNames struct{ redsyncContender }

func openRedsyncNames(address string, lease time.Duration) (Contender, error) {
	client := redis.NewClient(&redis.Options{Addr: address})
	opts := []redsync.Option{redsync.WithExpiry(lease), redsync.WithTries(1)}
	return &redsyncNames{redsyncContender{client, redsync.New(goredis.NewPool(client)), opts}}, nil
}

func (c *redsyncNames) Lock(ctx context.Context, name string) (func(context.Context) error, error) {
	return c.any(ctx, name+":one", 1)
}

func (c *redsyncNames) RLock(ctx context.Context, name string) (func(context.Context) error, error) {
	return c.any(ctx, name, Permits)
}

func (c *redsyncNames) any(ctx context.Context, name string, n int) (func(context.Context) error, error) {
	return poll(ctx, func() (func(context.Context) error, error) {
		first := rand.IntN(n)
		for i := range n {
			unlock, err := c.redsyncContender.Lock(ctx, fmt.Sprint(name, ":", (first+i)%n))
			if err == nil || ctx.Err() != nil {
				return unlock, err
			}
		}
		return nil, nil
	})
}

// weighted is golang.org/x/sync/semaphore, which serves one process: what no semaphore in Redis can be below. Names do not count.
type weighted struct{ one, all *semaphore.Weighted }

func openWeighted(string, time.Duration) (Contender, error) {
	return weighted{semaphore.NewWeighted(1), semaphore.NewWeighted(Permits)}, nil
}

func (c weighted) Lock(ctx context.Context, _ string) (func(context.Context) error, error) {
	return acquire(ctx, c.one)
}

func (c weighted) RLock(ctx context.Context, _ string) (func(context.Context) error, error) {
	return acquire(ctx, c.all)
}

func acquire(ctx context.Context, s *semaphore.Weighted) (func(context.Context) error, error) {
	if err := s.Acquire(ctx, 1); err != nil {
		return nil, err
	}
	return func(context.Context) error { s.Release(1); return nil }, nil
}

func (weighted) Close() {}
