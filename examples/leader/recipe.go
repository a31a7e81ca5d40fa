package main

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

// campaign takes the key if it is free, and renews it if it is this replica's.
var campaign = redis.NewScript(`
if redis.call('set', KEYS[1], ARGV[1], 'nx', 'px', ARGV[2]) then return 1 end
if redis.call('get', KEYS[1]) ~= ARGV[1] then return 0 end
return redis.call('pexpire', KEYS[1], ARGV[2])`)

// electWithKey has the usual recipe: a goroutine renews a key with an expiry and sets a flag, and the clock asks the flag before each
// job. A leader that was paused finds the flag still set.
func electWithKey(ctx context.Context, c *clock, key, name string) error {
	var leads atomic.Bool
	go func() {
		for ; ctx.Err() == nil; time.Sleep(lease / 3) {
			won, err := campaign.Run(ctx, c.client, []string{key}, name, lease.Milliseconds()).Bool()
			leads.Store(err == nil && won)
		}
	}()
	for led, next := false, 0; ctx.Err() == nil; time.Sleep(every) {
		if !leads.Load() {
			led = false
			continue
		}
		if !led {
			led = true
			var err error
			if next, err = c.next(ctx); err != nil {
				return err
			}
		}
		if next > ticks {
			return nil
		}
		if err := c.client.HIncrBy(ctx, c.key, fmt.Sprint(next), 1).Err(); err != nil {
			continue // the connection was lost, and with it perhaps the answer only
		}
		if err := c.client.HSet(ctx, c.key, "last", next).Err(); err != nil {
			return err
		}
		fmt.Println("has run tick", next)
		next++
	}
	return nil
}
