// Service is what a program with Holdfast looks like: a shop that sells items over HTTP and writes a report each night, in
// any number of replicas. Start two on different ports:
//
//	go run . -listen :8080 -db shop.db
//	go run . -listen :8081 -db shop.db
package main

import (
	"context"
	"errors"
	"flag"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/redis/go-redis/v9"
	"go.opentelemetry.io/otel/exporters/stdout/stdouttrace"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

func main() {
	listen := flag.String("listen", ":8080", "address of the HTTP server")
	address := flag.String("redis", "localhost:6379", "address of Redis")
	file := flag.String("db", "shop.db", "file of the SQLite database, which all replicas share")
	flag.Parse()
	log := slog.New(slog.NewJSONHandler(os.Stderr, nil))

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	client := redis.NewClient(&redis.Options{Addr: *address, ConnMaxIdleTime: 3 * time.Minute})
	listener, err := net.Listen("tcp", *listen)
	if err == nil {
		err = serve(ctx, log, client, listener, *file)
	}
	if err = errors.Join(err, client.Close()); err != nil { // the client is closed after the Manager
		log.Error("service failed", "error", err)
		os.Exit(1)
	}
}

// serve runs the service until ctx ends. Then it finishes the requests under way, stops the nightly job, and releases its locks.
func serve(ctx context.Context, log *slog.Logger, client redis.UniversalClient, listener net.Listener, file string) (err error) {
	exporter, err := stdouttrace.New(stdouttrace.WithWriter(os.Stderr))
	if err != nil {
		return err
	}
	traces := sdktrace.NewTracerProvider(sdktrace.WithBatcher(exporter))
	defer func() { err = errors.Join(err, traces.Shutdown(context.Background())) }()

	locks, err := holdfast.New(client,
		holdfast.WithLogger(log),            // lost leases, outages of Redis
		holdfast.WithTracerProvider(traces), // a span for each Lock and Unlock
		holdfast.WithMaxHold(time.Minute),   // ends the lease of a holder that hangs
	)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, locks.Close(context.Background())) }()

	db, err := open(ctx, file)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()

	shop := &shop{locks: locks, db: db, log: log, tracer: traces.Tracer("shop")}
	server := &http.Server{Handler: shop.routes(), ReadHeaderTimeout: 5 * time.Second}
	jobs, stop := context.WithCancel(ctx)
	var nightly sync.WaitGroup
	nightly.Go(func() { shop.nightly(jobs) })
	defer nightly.Wait() // before the database and the locks are closed
	defer stop()
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(listener) }()

	select {
	case err = <-failed:
		return err
	case <-ctx.Done():
	}
	log.Info("stopping")
	patience, cancel := context.WithTimeout(context.Background(), 20*time.Second) // ctx has ended
	defer cancel()
	return server.Shutdown(patience)
}
