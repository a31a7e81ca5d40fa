package main

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"
)

// setnx is the oldest recipe: SETNX to lock, DEL to unlock. There is no expiry, so
// the lock of a process that dies is held for ever. (EXPIRE as a second command
// only makes the moment to die in shorter.)
func setnx(rdb *redis.Client, key string) guard {
	return func(ctx context.Context, fn func(context.Context) error) error {
		for {
			ok, err := rdb.SetNX(ctx, key, 1, 0).Result()
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
