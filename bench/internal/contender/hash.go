package contender

import (
	"context"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"
)

// enterHash keeps the owner and how often it has entered in a hash. Each Lock here is a new owner.
var enterHash = redis.NewScript(`if redis.call('exists', KEYS[1]) == 0 or redis.call('hexists', KEYS[1], ARGV[1]) == 1 then
	redis.call('hincrby', KEYS[1], ARGV[1], 1)
	redis.call('pexpire', KEYS[1], ARGV[2])
	return false
end return redis.call('pttl', KEYS[1])`)

// enter returns how long the lock of another lasts, or 0 if the caller has the lock.
func enter(ctx context.Context, client *redis.Client, name, own string, lease time.Duration) (time.Duration, error) {
	left, err := enterHash.Run(ctx, client, []string{name}, own, millis(lease)).Int64()
	if errors.Is(err, redis.Nil) {
		return 0, nil
	}
	return max(time.Duration(left)*time.Millisecond, time.Millisecond), err
}
