// Command nightly-job is one replica of a service with a nightly job. One replica does the job; another takes over where it left
// off if it dies or gets stuck. For each step the job calls a web service, which -service names.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
)

const (
	steps   = 6
	lease   = time.Second     // how long the lock outlives a replica that dies
	maxHold = 3 * time.Second // longer than the whole job should take
)

func main() {
	prefix := flag.String("prefix", "nightly-job:", "prefix of the keys in Redis")
	service := flag.String("service", "http://localhost:8080", "URL of the service that the job calls")
	recipe := flag.Bool("recipe", false, "lock with a renewed key, as in recipe.go")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *prefix, *service, *recipe); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, prefix, service string, recipe bool) error {
	options, err := redis.ParseURL(cmp.Or(os.Getenv("REDIS_URL"), "redis://localhost:6379"))
	if err != nil {
		return err
	}
	client := redis.NewClient(options)
	defer client.Close()
	locks, err := holdfast.New(client, holdfast.WithLease(lease), holdfast.WithMaxHold(maxHold))
	if err != nil {
		return err
	}
	defer locks.Close(context.Background())

	j := &job{client: client, done: prefix + "done", service: service}
	tonight := locks.Mutex(prefix + "tonight")
	fmt.Println("is up")
	for { // until the job is done, by this replica or another
		if recipe {
			err = guarded(ctx, client, prefix+"tonight", j.run)
		} else {
			err = holdfast.Do(ctx, tonight, func(ctx context.Context, _ *holdfast.Lease) error { return j.run(ctx) })
		}
		switch {
		case err == nil:
			fmt.Println("sees that the job is done")
			return nil
		case errors.Is(err, holdfast.ErrMaxHold):
			fmt.Printf("steps down: it held the lock for %v\n", maxHold) // and queues again
		case errors.Is(err, holdfast.ErrLeaseLost):
			fmt.Println("steps down: it has lost the lock")
		default:
			return err
		}
	}
}

type job struct {
	client  *redis.Client
	done    string // key of the number of steps that are done
	service string
}

// run does what is left to do. It works under the context of the lease, so that it stops when the lease ends.
func (j *job) run(ctx context.Context) error {
	done, err := j.client.Get(ctx, j.done).Int()
	if err != nil && !errors.Is(err, redis.Nil) {
		return err
	}
	for step := done + 1; step <= steps; step++ {
		fmt.Println("begins step", step)
		if err := j.call(ctx, step); err != nil {
			return err
		}
		if err := j.client.Set(ctx, j.done, step, 0).Err(); err != nil {
			return err
		}
		fmt.Println("has done step", step)
	}
	return nil
}

func (j *job) call(ctx context.Context, step int) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, fmt.Sprintf("%s/step/%d", j.service, step), nil)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("step %d: %s", step, response.Status)
	}
	return nil
}
