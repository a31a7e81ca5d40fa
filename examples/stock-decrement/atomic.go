package main

import (
	"context"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"
)

var take = redis.NewScript(`
if tonumber(redis.call('get', KEYS[1])) <= 0 then
  return 0
end
redis.call('decr', KEYS[1])
return 1`)

// orderAtomic needs no lock: one script takes one from the stock if there is one. That is all the exclusion that a counter needs.
// What was taken for work that then fails has to be put back: that is the price.
func orderAtomic(ctx context.Context, client *redis.Client, prefix string) error {
	taken, err := take.Run(ctx, client, []string{prefix + "stock"}).Bool()
	if err != nil {
		return err
	}
	if !taken {
		fmt.Println("sold out")
		return nil
	}
	fmt.Println("takes one")
	time.Sleep(work)
	return client.Incr(ctx, prefix+"done").Err()
}
