package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"
)

var release = redis.NewScript(`
if redis.call('get', KEYS[1]) ~= ARGV[1] then return 0 end
return redis.call('del', KEYS[1])`)

// writeUnfenced has the careful recipe: an expiry, a unique value and compare-and-delete. That protects the lock from a paused
// process, and not the document: nothing in the write says that it is late.
func writeUnfenced(ctx context.Context, s *store, lock, word string) error {
	for value := rand.Text(); ; time.Sleep(10 * time.Millisecond) {
		locked, err := s.client.SetNX(ctx, lock, value, time.Second).Result()
		if err != nil {
			return err
		}
		if locked {
			defer release.Run(ctx, s.client, []string{lock}, value)
			break
		}
	}
	fmt.Println("has the lock")
	text, err := s.read(ctx)
	if err != nil {
		return err
	}
	if err := s.client.HSet(ctx, s.key, "text", text+" "+word).Err(); err != nil {
		return err
	}
	fmt.Println("has written")
	return nil
}
