// Command stock-decrement handles orders on a stock. Between reading and writing the stock it works for longer than the lease.
// Start several, in as many processes as you like.
package main

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"log"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
)

const (
	stock  = 15
	orders = 2
	lease  = time.Second
	work   = 1500 * time.Millisecond // for each order
)

func main() {
	prefix := flag.String("prefix", "stock-decrement:", "prefix of the keys in Redis")
	recipe := flag.Bool("recipe", false, "lock with SET and an expiry, as in recipe.go")
	atomic := flag.Bool("atomic", false, "use a script and no lock, as in atomic.go")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *prefix, *recipe, *atomic); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, prefix string, recipe, atomic bool) error {
	options, err := redis.ParseURL(cmp.Or(os.Getenv("REDIS_URL"), "redis://localhost:6379"))
	if err != nil {
		return err
	}
	client := redis.NewClient(options)
	defer client.Close()
	locks, err := holdfast.New(client, holdfast.WithLease(lease))
	if err != nil {
		return err
	}
	defer locks.Close(context.Background())

	if err := client.SetNX(ctx, prefix+"stock", stock, 0).Err(); err != nil {
		return err
	}
	mutex := locks.Mutex(prefix + "guard")
	for range orders {
		switch {
		case atomic:
			err = orderAtomic(ctx, client, prefix)
		case recipe:
			err = alone(ctx, client, prefix+"guard", func() error { return order(ctx, client, prefix) })
		default:
			err = holdfast.Do(ctx, mutex, func(ctx context.Context, _ *holdfast.Lease) error { return order(ctx, client, prefix) })
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// order needs the lock: between GET and SET no other process may do the same.
func order(ctx context.Context, client *redis.Client, prefix string) error {
	n, err := client.Get(ctx, prefix+"stock").Int()
	if err != nil {
		return err
	}
	fmt.Println("reads", n)
	select {
	case <-time.After(work):
	case <-ctx.Done(): // the lease is lost
		return context.Cause(ctx)
	}
	if err := client.Set(ctx, prefix+"stock", n-1, 0).Err(); err != nil {
		return err
	}
	fmt.Println("writes", n-1)
	return client.Incr(ctx, prefix+"done").Err()
}
