package contender

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"
)

var prolongOwn = redis.NewScript(`if redis.call('get', KEYS[1]) == ARGV[1] then
	return redis.call('pexpire', KEYS[1], redis.call('pttl', KEYS[1]) + ARGV[2])
end return 0`)

// askGuard is askToken with a goroutine that guards the lock: from 8 tenths of the lease
// on it adds half a lease every half lease. A holder that never finishes keeps it for
// ever, and one that has lost it is not told.
func askGuard(ctx context.Context, client *redis.Client, name string, lease time.Duration) (func(context.Context) error, error) {
	own := token()
	if err := set(ctx, client, name, own, lease); err != nil {
		return nil, err
	}
	stop, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		next := time.NewTimer(lease * 8 / 10)
		defer next.Stop()
		for {
			select {
			case <-next.C:
				err := owned(prolongOwn.Run(context.Background(), client, []string{name}, own, millis(lease/2)).Int64())
				if err != nil {
					return
				}
				next.Reset(lease / 2)
			case <-stop:
				return
			}
		}
	}()
	return func(ctx context.Context) error {
		close(stop)
		<-ended
		return owned(deleteOwn.Run(ctx, client, []string{name}, own).Int64())
	}, nil
}
