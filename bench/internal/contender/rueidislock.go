package contender

import (
	"context"
	"time"

	"github.com/redis/rueidis"
	"github.com/redis/rueidis/rueidislock"
)

// rueidislockContender is rueidislock, which pipelines by itself and is woken by
// Redis's client-side caching messages.
type rueidislockContender struct{ locker rueidislock.Locker }

// openRueidislock differs from the defaults of rueidislock where these are not meant
// for one server:
//
//   - KeyMajority 1: a lock is one key. The default of 2 keeps three keys on the same
//     server and costs three times the commands.
//   - NoLoopTracking: without it, a renewal wakes the renewing client, which renews
//     again, about ten thousand times per second and lock.
//   - TryNextAfter 2 s: by default a try that takes more than 20 ms counts as refused,
//     which under load makes it ask again.
//   - KeyValidity is the lease of the scenario; it is renewed after half of it.
func openRueidislock(address string, lease time.Duration) (Contender, error) {
	locker, err := rueidislock.NewLocker(rueidislock.LockerOption{
		ClientOption:   rueidis.ClientOption{InitAddress: []string{address}},
		KeyMajority:    1,
		NoLoopTracking: true,
		TryNextAfter:   2 * time.Second,
		KeyValidity:    lease,
	})
	if err != nil {
		return nil, err
	}
	return &rueidislockContender{locker}, nil
}

func (c *rueidislockContender) Lock(ctx context.Context, name string) (func(context.Context) error, error) {
	_, cancel, err := c.locker.WithContext(ctx, name)
	if err != nil {
		return nil, err
	}
	return func(context.Context) error {
		cancel() // waits for the reply, and does not tell it
		return nil
	}, nil
}

func (c *rueidislockContender) Close() { c.locker.Close() }
