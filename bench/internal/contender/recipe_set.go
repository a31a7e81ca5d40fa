package contender

import (
	"context"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"
)

// askSet is SET NX PX and DEL. The lock of a slow holder expires, and its DEL then
// removes the lock of the next, and so on down the line.
func askSet(ctx context.Context, client *redis.Client, name string, lease time.Duration) (func(context.Context) error, error) {
	if err := set(ctx, client, name, "1", lease); err != nil {
		return nil, err
	}
	return func(ctx context.Context) error { return client.Del(ctx, name).Err() }, nil
}

// set returns errBusy if the key exists.
func set(ctx context.Context, client *redis.Client, name, value string, lease time.Duration) error {
	err := client.Do(ctx, "set", name, value, "px", millis(lease), "nx").Err()
	if errors.Is(err, redis.Nil) {
		return errBusy
	}
	return err
}
