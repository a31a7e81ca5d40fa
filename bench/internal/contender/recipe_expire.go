package contender

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"
)

// askExpire is SETNX, then EXPIRE, and DEL. A crash between the first two leaves the
// lock forever, and a holder that is late deletes the lock of another.
func askExpire(ctx context.Context, client *redis.Client, name string, lease time.Duration) (func(context.Context) error, error) {
	unlock, err := askSetnx(ctx, client, name, lease)
	if err != nil {
		return nil, err
	}
	if err := client.Do(ctx, "pexpire", name, millis(lease)).Err(); err != nil {
		return nil, err
	}
	return unlock, nil
}
