package main

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/go-redsync/redsync/v4"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/holdfast-go/holdfast"
	"github.com/redis/go-redis/v9"
)

func main() {
	ctx := context.Background()
	client := redis.NewClient(&redis.Options{Addr: "localhost:6379"})
	defer client.Close()
	locks, err := holdfast.New(client)
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close(ctx)
	if err := pay(ctx, redsync.New(goredis.NewPool(client)), locks); err != nil {
		log.Fatal(err)
	}
}

func pay(ctx context.Context, rs *redsync.Redsync, locks *holdfast.Manager) error {
	mu := rs.NewMutex("account:7", redsync.WithExpiry(30*time.Second))
	if err := mu.LockContext(ctx); err != nil { // excludes processes of the old version
		return err
	}
	defer mu.UnlockContext(ctx)
	return holdfast.Do(ctx, locks.Mutex("holdfast:account:7"), // excludes processes of release two
		func(ctx context.Context, lease *holdfast.Lease) error { return charge(ctx) })
}

func charge(ctx context.Context) error {
	fmt.Println("charged account 7")
	return ctx.Err()
}
