package main

import (
	"context"
	"fmt"
	"log"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"
)

func main() {
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{"localhost:2379"}})
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	session, err := concurrency.NewSession(client, concurrency.WithTTL(30))
	if err != nil {
		log.Fatal(err)
	}
	defer session.Close()
	if err := pay(context.Background(), session); err != nil {
		log.Fatal(err)
	}
}

func pay(ctx context.Context, session *concurrency.Session) error {
	mu := concurrency.NewMutex(session, "/account/7")
	if err := mu.Lock(ctx); err != nil {
		return err
	}
	defer mu.Unlock(ctx)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-session.Done(): // all locks of the session are lost
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
