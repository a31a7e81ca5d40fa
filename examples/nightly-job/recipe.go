package main

import (
	"context"
	"crypto/rand"
	"time"

	"github.com/redis/go-redis/v9"
)

// renew and release check that the lock is still ours in the same step.
var (
	renew = redis.NewScript(`
if redis.call('get', KEYS[1]) ~= ARGV[1] then return 0 end
return redis.call('pexpire', KEYS[1], ARGV[2])`)
	release = redis.NewScript(`
if redis.call('get', KEYS[1]) ~= ARGV[1] then return 0 end
return redis.call('del', KEYS[1])`)
)

// guarded is the careful recipe: a token of our own, an expiry, compare-and-delete, and
// a guard that renews for as long as the process lives. A crash frees the lock; a
// holder that is stuck is renewed for ever, and nobody tells the work when a renewal
// fails.
func guarded(rdb *redis.Client, key string) guard {
	return func(ctx context.Context, fn func(context.Context) error) error {
		token := rand.Text()
		for {
			ok, err := rdb.SetNX(ctx, key, token, lease).Result()
			if err != nil {
				return err
			}
			if ok {
				break
			}
			select {
			case <-time.After(10 * time.Millisecond):
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		guard, stop := context.WithCancel(ctx)
		stopped := make(chan struct{})
		go func() {
			defer close(stopped)
			for tick := time.NewTicker(lease / 3); ; {
				select {
				case <-tick.C:
					renew.Run(guard, rdb, []string{key}, token, lease.Milliseconds())
				case <-guard.Done():
					tick.Stop()
					return
				}
			}
		}()
		defer release.Run(context.WithoutCancel(ctx), rdb, []string{key}, token)
		defer func() { stop(); <-stopped }()
		return fn(ctx)
	}
}
