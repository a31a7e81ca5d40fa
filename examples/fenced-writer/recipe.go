package main

import (
	"context"
	"crypto/rand"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/internal/example"
)

var release = redis.NewScript(`
if redis.call('get', KEYS[1]) ~= ARGV[1] then return 0 end
return redis.call('del', KEYS[1])`)

// unfenced is the careful recipe: an expiry, a value of one's own, compare-and-delete.
// It protects the lock from the paused process, and not the document: nothing in the
// write tells that it is late.
func unfenced(ctx context.Context, w *example.Worker) error {
	lock, value := w.Key("document"), rand.Text()
	for {
		ok, err := w.Redis.SetNX(ctx, lock, value, lease).Result()
		if err != nil {
			return err
		}
		if ok {
			break
		}
		if err := w.Think(ctx, 10*time.Millisecond); err != nil {
			return err
		}
	}
	defer release.Run(context.WithoutCancel(ctx), w.Redis, []string{lock}, value)
	w.Say("has the lock")
	text, err := read(ctx, w)
	if err != nil {
		return err
	}
	w.Here(lastLook)
	if err := w.Redis.HSet(ctx, w.Key("store"), "text", text+" "+w.Name).Err(); err != nil {
		return err
	}
	w.Say("has written")
	return nil
}
