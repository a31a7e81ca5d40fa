package main

import (
	"context"
	"crypto/rand"
	"time"

	"github.com/redis/go-redis/v9"
)

// renew and release check in the same step that the process still has the lock.
var (
	renew = redis.NewScript(`
if redis.call('get', KEYS[1]) ~= ARGV[1] then return 0 end
return redis.call('pexpire', KEYS[1], ARGV[2])`)
	release = redis.NewScript(`
if redis.call('get', KEYS[1]) ~= ARGV[1] then return 0 end
return redis.call('del', KEYS[1])`)
)

// guarded has the careful recipe: a unique value, an expiry, compare-and-delete, and a goroutine that renews for as long as the
// process lives. A crash frees the lock. A holder that is stuck is renewed forever, and the job does not learn that a renewal has failed.
func guarded(ctx context.Context, client *redis.Client, key string, fn func(context.Context) error) error {
	value := rand.Text()
	for {
		locked, err := client.SetNX(ctx, key, value, lease).Result()
		if err != nil {
			return err
		}
		if locked {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	guard, stop := context.WithCancel(ctx)
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		for tick := time.NewTicker(lease / 3); ; {
			select {
			case <-tick.C:
				renew.Run(guard, client, []string{key}, value, lease.Milliseconds())
			case <-guard.Done():
				tick.Stop()
				return
			}
		}
	}()
	defer release.Run(ctx, client, []string{key}, value)
	defer func() { stop(); <-stopped }()
	return fn(ctx)
}
