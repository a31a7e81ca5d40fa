package contender

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"
)

// Recipes are the locks that people write by hand, oldest first; a file each. They are
// measured as they are known, faults included, and recipe_test.go shows the faults.

// attempt asks for a lock once. It returns errBusy if another has it.
type attempt func(ctx context.Context, client *redis.Client, name string, lease time.Duration) (unlock func(context.Context) error, err error)

var (
	errBusy   = errors.New("another holds the lock")
	errNotOur = errors.New("the lock is not ours any more")
)

// pollPause is how long pollers wait between attempts, as the oldest recipe that waits
// does. A longer pause makes waiters slower, a shorter one costs more commands.
const pollPause = 10 * time.Millisecond

// poller is a recipe whose waiters ask again and again.
type poller struct {
	client *redis.Client
	lease  time.Duration
	ask    attempt
}

func openPoller(ask attempt) func(string, time.Duration) (Contender, error) {
	return func(address string, lease time.Duration) (Contender, error) {
		return &poller{redis.NewClient(&redis.Options{Addr: address}), lease, ask}, nil
	}
}

func (p *poller) Lock(ctx context.Context, name string) (func(context.Context) error, error) {
	pause := time.NewTimer(0)
	defer pause.Stop()
	for {
		select {
		case <-pause.C:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		unlock, err := p.ask(ctx, p.client, name, p.lease)
		if !errors.Is(err, errBusy) {
			return unlock, err
		}
		pause.Reset(pollPause)
	}
}

func (p *poller) Close() { p.client.Close() }

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
