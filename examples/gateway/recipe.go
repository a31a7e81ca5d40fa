package main

import (
	"context"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
)

// aloneByRecipe has the lock of most tutorials: SET with an expiry and NX, then DEL. A request that takes longer than the expiry goes
// on without the lock, and the next one of the same user is let in.
func aloneByRecipe(client *redis.Client) func(context.Context, string, func(context.Context) error) error {
	return func(ctx context.Context, name string, fn func(context.Context) error) error {
		locked, err := client.SetNX(ctx, name, 1, lease).Result()
		if err != nil {
			return err
		}
		if !locked {
			return holdfast.ErrNotAcquired
		}
		defer client.Del(context.WithoutCancel(ctx), name)
		return fn(ctx)
	}
}
