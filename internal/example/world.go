package example

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// World is what the processes of one run have in common.
type World struct {
	Mode  string // which of Scenario.Modes is played; "": Holdfast
	Redis *redis.Client
	id    string // of this run
}

// Key returns the name of a key, or lock, of this run. All of them are in one slot.
func (w *World) Key(name string) string { return "holdfast-example:{" + w.id + "}:" + name }

// Think takes d, or until ctx is done.
func (w *World) Think(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// connect returns a client that has reached its server.
func connect(ctx context.Context, redisURL string) (*redis.Client, error) {
	opt, err := redis.ParseURL(redisURL)
	if bad := (*url.Error)(nil); errors.As(err, &bad) {
		err = bad.Err // which does not repeat the URL, with its password
	}
	if err != nil {
		return nil, fmt.Errorf("--redis: %w", err)
	}
	rdb := redis.NewClient(opt)
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	if err := rdb.Ping(ctx).Err(); err != nil {
		return nil, errors.Join(fmt.Errorf("no usable Redis at %s: %w", opt.Addr, err), rdb.Close())
	}
	return rdb, nil
}

// clean removes every key of the run, also those that processes left behind that were
// killed. Keys that the lock derives from its names contain the id as well.
func (w *World) clean(ctx context.Context) error {
	keys := w.Redis.Scan(ctx, 0, "*{"+w.id+"}*", 1000).Iterator()
	for keys.Next(ctx) {
		if err := w.Redis.Del(ctx, keys.Val()).Err(); err != nil {
			return fmt.Errorf("remove the keys of this run: %w", err)
		}
	}
	return keys.Err()
}

// oneLine keeps what is said on the line it belongs to.
func oneLine(format string, args ...any) string {
	return strings.Join(strings.Fields(fmt.Sprintf(format, args...)), " ")
}
