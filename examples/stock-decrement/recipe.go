package main

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"
)

// setEX is the recipe of most tutorials: SET with an expiry and NX, then DEL. Work that
// is longer than the expiry goes on without the lock, and the DEL at its end removes
// the lock of whoever has it by then, which lets in a third.
func setEX(rdb *redis.Client, key string) guard {
	return func(ctx context.Context, fn func(context.Context) error) error {
		for {
			ok, err := rdb.SetNX(ctx, key, 1, lease).Result()
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
		defer rdb.Del(context.WithoutCancel(ctx), key)
		return fn(ctx)
	}
}
