package contender

import (
	"context"
	"errors"
	"math"
	"time"

	"github.com/go-redsync/redsync/v4"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/redis/go-redis/v9"
)

// redsyncContender is redsync over one server. A Mutex of redsync belongs to one
// goroutine, so each Lock makes one, as its documentation does.
type redsyncContender struct {
	client *redis.Client
	sync   *redsync.Redsync
	opts   []redsync.Option
}

// openRedsync sets redsync up to wait for as long as the context lets it: by default
// it gives up after 32 tries. A waiter pauses between tries for pause, or for its
// default of 50 to 250 ms if that is 0. The short pause is the better one for few
// waiters, the default for many.
func openRedsync(pause time.Duration) func(string, time.Duration) (Contender, error) {
	return func(address string, lease time.Duration) (Contender, error) {
		client := redis.NewClient(&redis.Options{Addr: address})
		opts := []redsync.Option{redsync.WithExpiry(lease), redsync.WithTries(math.MaxInt)}
		if pause > 0 {
			opts = append(opts, redsync.WithRetryDelay(pause))
		}
		return &redsyncContender{client, redsync.New(goredis.NewPool(client)), opts}, nil
	}
}

var errRedsyncUnlock = errors.New("redsync: not unlocked")

func (c *redsyncContender) Lock(ctx context.Context, name string) (func(context.Context) error, error) {
	m := c.sync.NewMutex(name, c.opts...)
	if err := m.LockContext(ctx); err != nil {
		return nil, err
	}
	return func(ctx context.Context) error {
		ok, err := m.UnlockContext(ctx)
		if err == nil && !ok {
			err = errRedsyncUnlock
		}
		return err
	}, nil
}

func (c *redsyncContender) Refused(ctx context.Context, name string) error {
	var taken *redsync.ErrTaken
	switch err := c.sync.NewMutex(name, c.opts...).TryLockContext(ctx); {
	case errors.As(err, &taken):
		return nil
	case err != nil:
		return err
	default:
		return errNotRefused
	}
}

func (c *redsyncContender) Close() { c.client.Close() }
