package main

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/redis/go-redis/v9"
)

func main() {
	ctx := context.Background()
	client := redis.NewClient(&redis.Options{Addr: "localhost:6379"})
	defer client.Close()
	locks, err := holdfast.New(client) // one Manager per process
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close(ctx)
	if err := pay(ctx, locks); err != nil {
		log.Fatal(err)
	}
}

func pay(ctx context.Context, locks *holdfast.Manager) error {
	account := locks.Mutex("account:7", holdfast.WithWait(5*time.Second)) // then ErrNotAcquired
	return holdfast.Do(ctx, account, func(ctx context.Context, lease *holdfast.Lease) error {
		return charge(ctx) // is cancelled if the lease is lost
	})
}

func charge(ctx context.Context) error {
	fmt.Println("charged account 7")
	return ctx.Err()
}
