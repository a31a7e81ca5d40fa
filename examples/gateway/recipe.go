package main

import (
	"context"

	"github.com/holdfast-go/holdfast/internal/example"
)

// setEX is the recipe of most tutorials. A request that takes longer than the expiry
// goes on without the lock, and the next one of the same user is let in.
func setEX(w *example.Worker) gate {
	return func(ctx context.Context, user string, fn func(context.Context) error) error {
		key := w.Key(user)
		ok, err := w.Redis.SetNX(ctx, key, 1, lease).Result()
		if err != nil {
			return err
		}
		if !ok {
			return errBusy
		}
		defer w.Redis.Del(context.WithoutCancel(ctx), key)
		return fn(ctx)
	}
}
