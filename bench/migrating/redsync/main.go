package main

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/go-redsync/redsync/v4"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/redis/go-redis/v9"
)

func main() {
	client := redis.NewClient(&redis.Options{Addr: "localhost:6379"})
	defer client.Close()
	if err := pay(context.Background(), redsync.New(goredis.NewPool(client))); err != nil {
		log.Fatal(err)
	}
}

func pay(ctx context.Context, rs *redsync.Redsync) error {
	mu := rs.NewMutex("account:7", redsync.WithExpiry(30*time.Second))
	if err := mu.LockContext(ctx); err != nil {
		return err
	}
	defer mu.UnlockContext(ctx)
	return charge(ctx)
}

func charge(ctx context.Context) error {
	fmt.Println("charged account 7")
	return ctx.Err()
}
