package contender

import (
	"context"
	"errors"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
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

var errNotOur = errors.New("the lock is not ours any more")

// owned turns the reply of a script that says 1 if it found the owner's lock into an
// error.
func owned(n int64, err error) error {
	if err == nil && n != 1 {
		err = errNotOur
	}
	return err
}

// token returns a value that no other attempt has.
func token() string { return uuid.NewString() }

func millis(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }

// unlocked is no lock at all. Tests show with it that an overlap does not go unseen.
type unlocked struct{}

func openUnlocked(string, time.Duration) (Contender, error) { return unlocked{}, nil }

func (unlocked) Lock(context.Context, string) (func(context.Context) error, error) {
	return func(context.Context) error { return nil }, nil
}

func (unlocked) Close() {}
