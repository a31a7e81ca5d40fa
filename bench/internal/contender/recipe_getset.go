package contender

import (
	"context"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"
)

// askGetset keeps the time at which the lock ends as its value: SETNX; if that time has
// passed, GETSET, which wins if it returns the value that was read before. Clocks must
// agree, the loser's GETSET moves the end of the winner's lock, and there is no owner.
func askGetset(ctx context.Context, client *redis.Client, name string, lease time.Duration) (func(context.Context) error, error) {
	end := time.Now().Add(lease).UnixNano()
	ok, err := client.Do(ctx, "setnx", name, end).Bool()
	if err != nil {
		return nil, err
	}
	if !ok {
		before, err := client.Get(ctx, name).Int64()
		if errors.Is(err, redis.Nil) || err == nil && time.Now().UnixNano() < before {
			return nil, errBusy
		}
		if err != nil {
			return nil, err
		}
		was, err := client.Do(ctx, "getset", name, end).Int64()
		if err == nil && was != before || errors.Is(err, redis.Nil) {
			err = errBusy
		}
		if err != nil {
			return nil, err
		}
	}
	return func(ctx context.Context) error {
		if time.Now().UnixNano() >= end {
			return nil // late: the key is left for the next
		}
		return client.Del(ctx, name).Err()
	}, nil
}
