// Command flash-sale is a shop in a flash sale of 10 phones: 25 buyers come at once. Start several, in as many processes as
// you like. They share one lock, so that each phone is sold once.
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
	"golang.org/x/sync/errgroup"

	"github.com/holdfast-go/holdfast"
)

const (
	phones   = 10
	crowd    = 25 // buyers
	paying   = 20 * time.Millisecond
	patience = 6 * time.Second // of a buyer in the queue
)

func main() {
	prefix := flag.String("prefix", "flash-sale:", "prefix of the keys in Redis")
	recipe := flag.Bool("recipe", false, "lock with SETNX and DEL, as in recipe.go")
	flag.Parse()
	if err := run(context.Background(), *prefix, *recipe); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, prefix string, recipe bool) error {
	options, err := redis.ParseURL(cmp.Or(os.Getenv("REDIS_URL"), "redis://localhost:6379"))
	if err != nil {
		return err
	}
	client := redis.NewClient(options)
	defer client.Close()
	locks, err := holdfast.New(client, holdfast.WithLease(time.Second)) // how long the lock outlives a shop that dies
	if err != nil {
		return err
	}
	defer locks.Close(ctx)

	s := &shop{client: client, stock: prefix + "stock", sales: prefix + "sales"}
	lock := locks.Mutex(prefix+"phones", holdfast.WithWait(patience)) // which bounds the wait, not the sale
	s.alone = func(ctx context.Context, sell func(context.Context) error) error {
		return holdfast.Do(ctx, lock, func(ctx context.Context, _ *holdfast.Lease) error { return sell(ctx) })
	}
	if recipe {
		s.alone = setnx(client, prefix+"phones")
	}
	if err := client.SetNX(ctx, s.stock, phones, 0).Err(); err != nil { // the first shop fills the shelf
		return err
	}
	var buyers errgroup.Group
	for range crowd {
		buyers.Go(func() error { return s.serve(ctx) })
	}
	return buyers.Wait()
}

type shop struct {
	client       *redis.Client
	stock, sales string                                                            // keys
	alone        func(ctx context.Context, sell func(context.Context) error) error // under the lock
}

// serve serves one buyer.
func (s *shop) serve(ctx context.Context) error {
	err := s.alone(ctx, s.sell)
	if errors.Is(err, holdfast.ErrNotAcquired) {
		fmt.Println("a buyer goes home: the queue does not move")
		return nil
	}
	return err
}

// sell is the sale at its most naive: read the stock, take the money, write the stock. Only the lock keeps it right.
func (s *shop) sell(ctx context.Context) error {
	left, err := s.client.Get(ctx, s.stock).Int()
	if err != nil {
		return err
	}
	if left == 0 {
		fmt.Println("sold out")
		return nil
	}
	phone := phones - left + 1
	time.Sleep(paying)
	if err := s.client.Set(ctx, s.stock, left-1, 0).Err(); err != nil {
		return err
	}
	fmt.Println("sold phone", phone)
	return s.client.RPush(ctx, s.sales, phone).Err()
}
