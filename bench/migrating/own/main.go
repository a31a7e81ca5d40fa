package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/redis/go-redis/v9"
)

var unlock = redis.NewScript(`if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) end return 0`)

func main() {
	client := redis.NewClient(&redis.Options{Addr: "localhost:6379"})
	defer client.Close()
	if err := pay(context.Background(), client); err != nil {
		log.Fatal(err)
	}
}

func pay(ctx context.Context, client *redis.Client) error {
	token := rand.Text()
	err := client.SetArgs(ctx, "account:7", token, redis.SetArgs{Mode: "NX", TTL: 10 * time.Second}).Err()
	if errors.Is(err, redis.Nil) {
		return nil // another process is doing this
	}
	if err != nil {
		return err
	}
	defer unlock.Run(ctx, client, []string{"account:7"}, token)
	return charge(ctx)
}

func charge(ctx context.Context) error {
	fmt.Println("charged account 7")
	return ctx.Err()
}
