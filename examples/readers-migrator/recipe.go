package main

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/internal/example"
)

var (
	enterReader = redis.NewScript(`
if redis.call('exists', KEYS[2]) == 1 then return 0 end
redis.call('incr', KEYS[1])
return 1`)
	enterWriter = redis.NewScript(`
redis.call('set', KEYS[2], 'waits', 'px', ARGV[1])
if tonumber(redis.call('get', KEYS[1]) or 0) > 0 then return 0 end
return 1`)
)

// counted is the read-write lock that one writes first: a counter of readers, and a
// flag that keeps new ones out while a writer waits or writes. Nothing says whose a
// unit of the counter is, so that of a reader that died stays, and so does the
// writer.
func counted(w *example.Worker) rwGuard {
	keys := []string{w.Key("readers"), w.Key("writer")}
	enter := func(ctx context.Context, s *redis.Script) error {
		for {
			ok, err := s.Run(ctx, w.Redis, keys, lease.Milliseconds()).Bool()
			if err != nil || ok {
				return err
			}
			if err := w.Think(ctx, 10*time.Millisecond); err != nil {
				return err
			}
		}
	}
	return rwGuard{
		read: func(ctx context.Context, fn func(context.Context) error) error {
			if err := enter(ctx, enterReader); err != nil {
				return err
			}
			defer w.Redis.Decr(context.WithoutCancel(ctx), keys[0])
			return fn(ctx)
		},
		write: func(ctx context.Context, fn func(context.Context) error) error {
			if err := enter(ctx, enterWriter); err != nil {
				return err
			}
			defer w.Redis.Del(context.WithoutCancel(ctx), keys[1])
			return fn(ctx)
		},
	}
}
