package main

import (
	"context"
	"log"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/holdfast-go/holdfast"
	holdfasttusd "github.com/holdfast-go/holdfast/contrib/tusd"
	"github.com/redis/go-redis/v9"
	"github.com/tus/tusd/v2/pkg/filestore"
	"github.com/tus/tusd/v2/pkg/handler"
)

const uploads = "./uploads" // on a disk that all servers share

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if err := run(ctx); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context) error {
	client := redis.NewClient(&redis.Options{Addr: "localhost:6379"})
	defer client.Close()
	locks, err := holdfast.New(client)
	if err != nil {
		return err
	}
	defer locks.Close(context.Background())

	if err := os.MkdirAll(uploads, 0o755); err != nil {
		return err
	}
	composer := handler.NewStoreComposer()
	filestore.New(uploads).UseIn(composer)
	// A request waits for up to 20 s (AcquireLockTimeout): longer than the lock of a server that died stays.
	composer.UseLocker(holdfasttusd.New(locks, holdfast.WithLease(10*time.Second)))
	tus, err := handler.NewHandler(handler.Config{BasePath: "/files/", StoreComposer: composer})
	if err != nil {
		return err
	}

	mux := http.NewServeMux()
	mux.Handle("/files/", http.StripPrefix("/files/", tus))
	server := &http.Server{Addr: ":8080", Handler: mux}
	ended := make(chan error, 1)
	go func() { ended <- server.ListenAndServe() }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	bounded, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	return server.Shutdown(bounded) // before locks.Close, which ends the locks of requests that still run
}
