package main

import (
	"context"
	"errors"
	"log"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/hibiken/asynq"
	"github.com/holdfast-go/holdfast"
	holdfastasynq "github.com/holdfast-go/holdfast/contrib/asynq"
	"github.com/redis/go-redis/v9"
)

const addr = "localhost:6379"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if err := run(ctx); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context) error {
	client := redis.NewClient(&redis.Options{Addr: addr})
	defer client.Close()
	locks, err := holdfast.New(client)
	if err != nil {
		return err
	}
	defer locks.Close(context.Background())

	// Each replica works. All of them together send at most 5 invoices at a time.
	mux := asynq.NewServeMux()
	limit := holdfastasynq.Limit(locks.Semaphore("shop:invoices", 5))
	mux.Handle("invoice", limit(asynq.HandlerFunc(sendInvoice)))
	workers := asynq.NewServer(asynq.RedisClientOpt{Addr: addr}, asynq.Config{
		IsFailure:      isFailure,
		RetryDelayFunc: retryDelay,
	})
	if err := workers.Start(mux); err != nil {
		return err
	}
	defer workers.Shutdown() // before locks.Close, which ends the permits of tasks that still run

	// One replica schedules.
	hostname, err := os.Hostname()
	if err != nil {
		return err
	}
	return holdfastasynq.RunScheduler(ctx, locks.Election("shop:scheduler"), hostname, scheduler)
}

func scheduler() (*asynq.Scheduler, error) {
	s := asynq.NewScheduler(asynq.RedisClientOpt{Addr: addr}, nil)
	_, err := s.Register("* * * * *", asynq.NewTask("invoice", nil))
	return s, err
}

func sendInvoice(ctx context.Context, _ *asynq.Task) error {
	log.Print("the invoice of this minute")
	return ctx.Err() // Canceled if the permit is lost
}

func isFailure(err error) bool { return !errors.Is(err, holdfastasynq.ErrNotRun) }

func retryDelay(n int, err error, t *asynq.Task) time.Duration {
	if errors.Is(err, holdfastasynq.ErrNotRun) {
		return 10 * time.Second // about as long as a task takes
	}
	return asynq.DefaultRetryDelayFunc(n, err, t)
}
