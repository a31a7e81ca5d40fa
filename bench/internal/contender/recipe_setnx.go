package contender

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"
)

// askSetnx is SETNX and DEL. A crash between the two leaves the lock forever.
func askSetnx(ctx context.Context, client *redis.Client, name string, _ time.Duration) (func(context.Context) error, error) {
	ok, err := client.Do(ctx, "setnx", name, 1).Bool()
	if err == nil && !ok {
		err = errBusy
	}
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context) error { return client.Del(ctx, name).Err() }, nil
}
