// Command recipe handles orders with the recipe of most tutorials: SET with an expiry and NX, then DEL. Work that is longer than
// the expiry goes on without the lock. The DEL at its end removes the lock of another process, which lets in a third.
package main

import (
	"cmp"
	"context"
	"errors"
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
	expiry = time.Second
	work   = 1500 * time.Millisecond // for each order
)

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
		if err := alone(ctx, client, prefix+"guard", func() error { return order(ctx, client, prefix) }); err != nil {
			return err
		}
	}
	return nil
}

func alone(ctx context.Context, client *redis.Client, key string, fn func() error) error {
	for {
		locked, err := client.SetNX(ctx, key, 1, expiry).Result()
		if err != nil {
			return err
		}
		if locked {
			return errors.Join(fn(), client.Del(ctx, key).Err())
		}
		time.Sleep(10 * time.Millisecond)
	}
}

func order(ctx context.Context, client *redis.Client, prefix string) error {
	n, err := client.Get(ctx, prefix+"stock").Int()
	if err != nil {
		return err
	}
	fmt.Println("reads", n)
	time.Sleep(work)
	if err := client.Set(ctx, prefix+"stock", n-1, 0).Err(); err != nil {
		return err
	}
	fmt.Println("writes", n-1)
	return client.Incr(ctx, prefix+"done").Err()
}
