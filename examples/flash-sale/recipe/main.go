// Command recipe is the flash sale with the oldest recipe for a lock: SETNX to lock, DEL to unlock. There is no expiry, so the lock
// of a process that dies is held forever. EXPIRE as a second command only makes the moment to die in shorter.
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
)

const (
	phones   = 10
	crowd    = 25 // buyers
	paying   = 20 * time.Millisecond
	patience = 6 * time.Second // of a buyer in the queue
)

func main() {
	prefix := flag.String("prefix", "flash-sale:", "prefix of the keys in Redis")
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
	s := &shop{client: client, lock: prefix + "phones", stock: prefix + "stock", sales: prefix + "sales"}
	if err := client.SetNX(ctx, s.stock, phones, 0).Err(); err != nil {
		return err
	}
	var buyers errgroup.Group
	for range crowd {
		buyers.Go(func() error { return s.serve(ctx) })
	}
	return buyers.Wait()
}

type shop struct {
	client             *redis.Client
	lock, stock, sales string // keys
}

func (s *shop) serve(ctx context.Context) error {
	for deadline := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		locked, err := s.client.SetNX(ctx, s.lock, 1, 0).Result()
		if err != nil {
			return err
		}
		if locked {
			break
		}
		if time.Now().After(deadline) {
			fmt.Println("a buyer goes home: the queue does not move")
			return nil
		}
	}
	err := s.sell(ctx)
	return errors.Join(err, s.client.Del(ctx, s.lock).Err())
}

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
