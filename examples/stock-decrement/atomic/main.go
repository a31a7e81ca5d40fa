// Command atomic handles orders without a lock: one script takes one from the stock if there is one. That is all the exclusion
// that a counter needs. What was taken for work that then fails has to be put back: that is the price.
package main

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"log"
	"os"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	stock  = 15
	orders = 2
	work   = 1500 * time.Millisecond // for each order
)

var take = redis.NewScript(`
if tonumber(redis.call('get', KEYS[1])) <= 0 then
  return 0
end
redis.call('decr', KEYS[1])
return 1`)

func main() {
	prefix := flag.String("prefix", "stock-decrement:", "prefix of the keys in Redis")
	flag.Parse()
	if err := run(context.Background(), *prefix); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, prefix string) error {
	options, err := redis.ParseURL(cmp.Or(os.Getenv("REDIS_URL"), "redis://localhost:6379"))
	if err != nil {
		return err
	}
	client := redis.NewClient(options)
	defer client.Close()
	if err := client.SetNX(ctx, prefix+"stock", stock, 0).Err(); err != nil {
		return err
	}
	for range orders {
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
		if err := client.Incr(ctx, prefix+"done").Err(); err != nil {
			return err
		}
	}
	return nil
}
