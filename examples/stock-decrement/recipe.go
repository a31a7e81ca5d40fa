package main

import (
	"context"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"
)

// alone has the lock of most tutorials: SET with an expiry and NX, then DEL. Work that is longer than the expiry goes on without the
// lock. The DEL at its end removes the lock of another process, which lets in a third.
func alone(ctx context.Context, client *redis.Client, key string, fn func() error) error {
	for {
		locked, err := client.SetNX(ctx, key, 1, lease).Result()
		if err != nil {
			return err
		}
		if locked {
			return errors.Join(fn(), client.Del(ctx, key).Err())
		}
		time.Sleep(10 * time.Millisecond)
	}
}
