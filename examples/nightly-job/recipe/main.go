// Command recipe is the nightly job with the careful recipe: a unique value, an expiry, compare-and-delete, and a goroutine that
// renews for as long as the process lives. A crash frees the lock. A holder that is stuck is renewed forever, and the job
// does not learn that a renewal has failed.
package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"flag"
	"fmt"
	"log"
	"net/http"
	"os"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	steps  = 6
	expiry = time.Second
)

// renew and release check in the same step that the process still has the lock.
var (
	renew = redis.NewScript(`
if redis.call('get', KEYS[1]) ~= ARGV[1] then return 0 end
return redis.call('pexpire', KEYS[1], ARGV[2])`)
	release = redis.NewScript(`
if redis.call('get', KEYS[1]) ~= ARGV[1] then return 0 end
return redis.call('del', KEYS[1])`)
)

func main() {
	prefix := flag.String("prefix", "nightly-job:", "prefix of the keys in Redis")
	service := flag.String("service", "http://localhost:8080", "URL of the service that the job calls")
	flag.Parse()
	if err := run(context.Background(), *prefix, *service); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, prefix, service string) error {
	options, err := redis.ParseURL(cmp.Or(os.Getenv("REDIS_URL"), "redis://localhost:6379"))
	if err != nil {
		return err
	}
	client := redis.NewClient(options)
	defer client.Close()
	j := &job{client: client, done: prefix + "done", service: service}
	fmt.Println("is up")
	if err := guarded(ctx, client, prefix+"tonight", j.run); err != nil {
		return err
	}
	fmt.Println("sees that the job is done")
	return nil
}

func guarded(ctx context.Context, client *redis.Client, key string, fn func(context.Context) error) error {
	value := rand.Text()
	for {
		locked, err := client.SetNX(ctx, key, value, expiry).Result()
		if err != nil {
			return err
		}
		if locked {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	guard, stop := context.WithCancel(ctx)
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		for tick := time.NewTicker(expiry / 3); ; {
			select {
			case <-tick.C:
				renew.Run(guard, client, []string{key}, value, expiry.Milliseconds())
			case <-guard.Done():
				tick.Stop()
				return
			}
		}
	}()
	defer release.Run(ctx, client, []string{key}, value)
	defer func() { stop(); <-stopped }()
	return fn(ctx)
}

type job struct {
	client  *redis.Client
	done    string // key of the number of steps that are done
	service string
}

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
