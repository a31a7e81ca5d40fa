package main

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/hashicorp/consul/api"
)

func main() {
	client, err := api.NewClient(api.DefaultConfig())
	if err != nil {
		log.Fatal(err)
	}
	if err := pay(context.Background(), client); err != nil {
		log.Fatal(err)
	}
}

func pay(ctx context.Context, client *api.Client) error {
	lock, err := client.LockOpts(&api.LockOptions{Key: "account/7", SessionTTL: "30s"})
	if err != nil {
		return err
	}
	lost, err := lock.Lock(ctx.Done())
	if err != nil {
		return err
	}
	if lost == nil {
		return errors.New("the context has ended")
	}
	defer lock.Unlock()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-lost:
			cancel()
		case <-ctx.Done():
		}
	}()
	return charge(ctx)
}

func charge(ctx context.Context) error {
	fmt.Println("charged account 7")
	return ctx.Err()
}
