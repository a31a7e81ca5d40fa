package contender

import (
	"context"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"
)

var (
	enterHash = redis.NewScript(`if redis.call('exists', KEYS[1]) == 0 or redis.call('hexists', KEYS[1], ARGV[1]) == 1 then
	redis.call('hincrby', KEYS[1], ARGV[1], 1)
	redis.call('pexpire', KEYS[1], ARGV[2])
	return false
end return redis.call('pttl', KEYS[1])`)

	leaveHash = redis.NewScript(`if redis.call('hexists', KEYS[1], ARGV[1]) == 0 then return 0 end
if redis.call('hincrby', KEYS[1], ARGV[1], -1) == 0 then redis.call('del', KEYS[1]) end
return 1`)
)

// askHash keeps the owner and how often it has entered in a hash, so that an owner, who is a new
// one for each Lock here, can enter again. No process deletes the lock of another; waiting is polling, and there is no renewal.
func askHash(ctx context.Context, client *redis.Client, name string, lease time.Duration) (func(context.Context) error, error) {
	own := token()
	left, err := enter(ctx, client, name, own, lease)
	if err == nil && left > 0 {
		err = errBusy
	}
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context) error {
		return owned(leaveHash.Run(ctx, client, []string{name}, own).Int64())
	}, nil
}

// enter returns how long the lock of another lasts, or 0 if the caller has the lock.
func enter(ctx context.Context, client *redis.Client, name, own string, lease time.Duration) (time.Duration, error) {
	left, err := enterHash.Run(ctx, client, []string{name}, own, millis(lease)).Int64()
	if errors.Is(err, redis.Nil) {
		return 0, nil
	}
	return max(time.Duration(left)*time.Millisecond, time.Millisecond), err
}
