package main

import (
	"context"
	"errors"
	"log"
	"os/signal"
	"syscall"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/google/uuid"
	"github.com/holdfast-go/holdfast"
	holdfastgocron "github.com/holdfast-go/holdfast/contrib/gocron"
	"github.com/redis/go-redis/v9"
)

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

	s, err := gocron.NewScheduler()
	if err != nil {
		return err
	}
	// The job's clock may be late by up to 30 seconds: half its interval.
	locker := holdfastgocron.NewLocker(locks, holdfast.WithHoldAtLeast(30*time.Second))
	_, err = s.NewJob(gocron.CronJob("* * * * *", false), gocron.NewTask(report),
		gocron.WithName("jobs:report"), // the lock's name
		gocron.WithDistributedJobLocker(locker),
		gocron.WithEventListeners(gocron.AfterLockError(notRun)))
	if err != nil {
		return err
	}
	s.Start()
	<-ctx.Done()
	return s.Shutdown() // before locks.Close, which ends the lease of a job that still runs
}

func report() { log.Print("the report of this minute") }

func notRun(_ uuid.UUID, job string, err error) {
	if errors.Is(err, holdfast.ErrNotAcquired) {
		return // another replica runs the job, or has run it
	}
	log.Printf("%s does not run here: %v", job, err)
}
