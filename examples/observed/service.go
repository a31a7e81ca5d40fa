package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/redis/go-redis/v9"
	exporter "go.opentelemetry.io/otel/exporters/prometheus"
	"go.opentelemetry.io/otel/sdk/metric"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/debug"
)

// runService is one service: its locks, its load, and the port for operators.
func runService(ctx context.Context, name, listen, redisURL string) (err error) {
	log := slog.New(slog.NewTextHandler(os.Stderr, nil)).With("service", name)

	// Metrics: the SDK of OpenTelemetry, read by Prometheus.
	registry := prometheus.NewRegistry()
	reader, err := exporter.New(exporter.WithRegisterer(registry))
	if err != nil {
		return err
	}
	meters := metric.NewMeterProvider(metric.WithReader(reader))
	defer func() { err = errors.Join(err, meters.Shutdown(context.WithoutCancel(ctx))) }()

	opts, err := redis.ParseURL(redisURL)
	if err != nil {
		return err
	}
	rdb := redis.NewClient(opts)
	defer rdb.Close()
	listener, err := net.Listen("tcp", listen)
	if err != nil {
		return err
	}
	page := fmt.Sprintf("http://%s/debug/holdfast/", listener.Addr())
	locks, err := holdfast.New(rdb, holdfast.WithLease(10*time.Second), holdfast.WithLogger(log), holdfast.WithMeterProvider(meters),
		holdfast.WithIdentity(name), holdfast.WithDebugPage(page)) // each service says in Redis what it is, and where its page is
	if err != nil {
		return err
	}
	defer func() { // before the client is closed, and after the load has ended
		closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
		defer cancel()
		err = errors.Join(err, locks.Close(closing))
	}()

	// The operators' port: metrics, and the page about the locks.
	mux := http.NewServeMux()
	mux.Handle("/metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	mux.Handle("/debug/holdfast/", debug.Handler(locks))
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second}
	serving := make(chan error, 1)
	go func() { serving <- server.Serve(listener) }()
	fmt.Printf("%s: page %s metrics http://%s/metrics\n", name, page, listener.Addr())

	work(ctx, log, locks) // until ctx is done
	if err := server.Shutdown(context.WithoutCancel(ctx)); err != nil {
		return err
	}
	if err := <-serving; !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
