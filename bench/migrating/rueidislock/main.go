package main

import (
	"context"
	"fmt"
	"log"

	"github.com/redis/rueidis"
	"github.com/redis/rueidis/rueidislock"
)

func main() {
	locker, err := rueidislock.NewLocker(rueidislock.LockerOption{
		ClientOption: rueidis.ClientOption{InitAddress: []string{"localhost:6379"}},
		KeyMajority:  1,
	})
	if err != nil {
		log.Fatal(err)
	}
	defer locker.Close()
	if err := pay(context.Background(), locker); err != nil {
		log.Fatal(err)
	}
}

func pay(ctx context.Context, locker rueidislock.Locker) error {
	ctx, cancel, err := locker.WithContext(ctx, "account:7")
	if err != nil {
		return err
	}
	defer cancel()
	return charge(ctx)
}

func charge(ctx context.Context) error {
	fmt.Println("charged account 7")
	return ctx.Err()
}
