// Command downloads fetches eight files from a host that allows five downloads at a time, over all processes. A semaphore keeps to that.
package main

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"log"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"
	"golang.org/x/sync/errgroup"

	"github.com/holdfast-go/holdfast"
)

const (
	atOnce = 5
	files  = 8
	takes  = 400 * time.Millisecond
	lease  = time.Second // how long a permit outlives a process that dies
)

func main() {
	prefix := flag.String("prefix", "downloads:", "prefix of the keys in Redis")
	name := flag.String("name", "process", "what the host knows this process by")
	recipe := flag.Bool("recipe", false, "count with INCR and DECR, as in recipe.go")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *prefix, *name, *recipe); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, prefix, name string, recipe bool) error {
	options, err := redis.ParseURL(cmp.Or(os.Getenv("REDIS_URL"), "redis://localhost:6379"))
	if err != nil {
		return err
	}
	options.MaxRetries = -1 // the host sees a download once
	client := redis.NewClient(options)
	defer client.Close()
	locks, err := holdfast.New(client, holdfast.WithLease(lease))
	if err != nil {
		return err
	}
	defer locks.Close(context.Background())

	permits := locks.Semaphore(prefix+"permits", atOnce).Locker(1)
	with := func(ctx context.Context, fn func(context.Context) error) error {
		return holdfast.Do(ctx, permits, func(ctx context.Context, _ *holdfast.Lease) error { return fn(ctx) })
	}
	if recipe {
		with = (&counter{client: client, key: prefix + "counter"}).with
	}
	h := &host{client: client, seen: prefix + "seen", name: name}
	var all errgroup.Group
	for file := range files {
		all.Go(func() error {
			return with(ctx, func(ctx context.Context) error { return h.download(ctx, file+1) })
		})
	}
	err = all.Wait()
	if err == nil {
		fmt.Println("has them all")
	}
	return err
}

// host is where the files are. Redis stands for it: a list has what the host sees, in its order.
type host struct {
	client     *redis.Client
	seen, name string
}

// download ends early if the permit is lost: ctx ends then, before another process can have the permit.
func (h *host) download(ctx context.Context, file int) error {
	if err := h.client.RPush(ctx, h.seen, fmt.Sprintf("begins %s %d", h.name, file)).Err(); err != nil {
		return err
	}
	fmt.Println("downloads file", file)
	select {
	case <-time.After(takes):
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if err := h.client.RPush(ctx, h.seen, fmt.Sprintf("ends %s %d", h.name, file)).Err(); err != nil {
		return err
	}
	fmt.Println("has file", file)
	return nil
}
