package main

import (
	"context"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
)

// setnx is the oldest recipe for a lock: SETNX to lock, DEL to unlock. There is no expiry, so the lock of a process that dies is held
// forever. EXPIRE as a second command only makes the moment to die in shorter.
func setnx(client *redis.Client, key string) func(context.Context, func(context.Context) error) error {
	return func(ctx context.Context, fn func(context.Context) error) error {
		for deadline := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
			locked, err := client.SetNX(ctx, key, 1, 0).Result()
			if err != nil {
				return err
			}
			if locked {
				break
			}
			if time.Now().After(deadline) {
				return holdfast.ErrNotAcquired
			}
		}
		return errors.Join(fn(ctx), client.Del(ctx, key).Err())
	}
}
