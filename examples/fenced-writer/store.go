package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/internal/example"
)

// The store is whatever the lock protects. Here it is a hash in the same Redis; in a
// database it would be
//
//	UPDATE document SET text = $1, fence = $2 WHERE id = 1 AND fence <= $2
//
// and a look at how many rows that changed.
var fencedWrite = redis.NewScript(`
local fence = tonumber(redis.call('hget', KEYS[1], 'fence') or 0)
if tonumber(ARGV[2]) < fence then
  return fence
end
redis.call('hset', KEYS[1], 'text', ARGV[1], 'fence', ARGV[2])
return 0`)

var errStale = errors.New("stale token")

func read(ctx context.Context, w *example.Worker) (string, error) {
	text, err := w.Redis.HGet(ctx, w.Key("store"), "text").Result()
	if errors.Is(err, redis.Nil) {
		err = nil
	}
	return text, err
}

// write returns errStale if the store has seen a larger token.
func write(ctx context.Context, w *example.Worker, text string, token uint64) error {
	fence, err := fencedWrite.Run(ctx, w.Redis, []string{w.Key("store")}, text, token).Int()
	if err == nil && fence > 0 {
		err = fmt.Errorf("%w %d, the store has seen %d", errStale, token, fence)
	}
	return err
}
