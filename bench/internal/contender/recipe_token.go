package contender

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"
)

var deleteOwn = redis.NewScript(`if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) end return 0`)

// askToken is SET NX PX with a value of its own, and a script that deletes the key only
// if it still has that. Work that takes longer than the lease is not protected.
func askToken(ctx context.Context, client *redis.Client, name string, lease time.Duration) (func(context.Context) error, error) {
	own := token()
	if err := set(ctx, client, name, own, lease); err != nil {
		return nil, err
	}
	return func(ctx context.Context) error {
		return owned(deleteOwn.Run(ctx, client, []string{name}, own).Int64())
	}, nil
}
