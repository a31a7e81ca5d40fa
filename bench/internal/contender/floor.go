package contender

import (
	"context"
	"errors"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

// floorContender is the simplest correct lock there is on one server: SET NX PX with
// a unique value, and compare-and-delete. It neither waits nor renews. What its two
// calls cost through go-redis is the floor for every lock with two round trips.
type floorContender struct {
	client *redis.Client
	lease  int64 // milliseconds
	tokens atomic.Uint64
}

var (
	floorLock   = redis.NewScript(`return redis.call('set', KEYS[1], ARGV[1], 'nx', 'px', ARGV[2])`)
	floorUnlock = redis.NewScript(`if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) end return 0`)

	errFloorHeld = errors.New("floor: held by another")
	errFloorLost = errors.New("floor: not held any more")
)

func openFloor(address string, lease time.Duration) (Contender, error) {
	client := redis.NewClient(&redis.Options{Addr: address})
	return &floorContender{client: client, lease: lease.Milliseconds()}, nil
}

func (c *floorContender) Lock(ctx context.Context, name string) (func(context.Context) error, error) {
	token := strconv.FormatUint(c.tokens.Add(1), 10)
	keys := []string{name}
	switch err := floorLock.Run(ctx, c.client, keys, token, c.lease).Err(); {
	case err == redis.Nil:
		return nil, errFloorHeld
	case err != nil:
		return nil, err
	}
	return func(ctx context.Context) error {
		n, err := floorUnlock.Run(ctx, c.client, keys, token).Int()
		if err == nil && n != 1 {
			err = errFloorLost
		}
		return err
	}, nil
}

func (c *floorContender) Close() { c.client.Close() }
