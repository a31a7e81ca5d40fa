// Command upload takes an upload of a document in one process, and publishes it in another one, under one lock: the request locks the
// document, and leaves the lock to the worker by a ticket, which goes with the job. With -file the program is the request, without it the worker.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
)

const (
	waits = 10 * time.Second // how long a job may wait for a worker
	takes = 100 * time.Millisecond
	lease = time.Second // how long the lock outlives a worker that dies
)

func main() {
	prefix := flag.String("prefix", "upload:", "prefix of the keys in Redis")
	file := flag.String("file", "", "upload this, instead of working on a job")
	recipe := flag.Bool("recipe", false, "lock in the request, and again in the worker, as in recipe.go")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *prefix, *file, *recipe); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, prefix, file string, recipe bool) error {
	options, err := redis.ParseURL(cmp.Or(os.Getenv("REDIS_URL"), "redis://localhost:6379"))
	if err != nil {
		return err
	}
	options.MaxRetries = -1 // a job is not taken twice
	client := redis.NewClient(options)
	defer client.Close()
	locks, err := holdfast.New(client, holdfast.WithLease(lease))
	if err != nil {
		return err
	}
	defer locks.Close(context.Background())

	s := &site{client, prefix}
	document := locks.Mutex(prefix + "document")
	switch {
	case recipe:
		return byHand(ctx, s, file)
	case file != "":
		return accept(ctx, s, document, file)
	}
	return work(ctx, s, locks, document)
}

// accept is the request. The document stays locked when it has been answered, until a worker has published the file.
func accept(ctx context.Context, s *site, document *holdfast.Mutex, file string) error {
	fmt.Println("wants to upload", file)
	lease, err := document.Lock(ctx)
	if err != nil {
		return err
	}
	if err := s.upload(ctx, file); err != nil {
		return errors.Join(err, lease.Unlock(ctx))
	}
	ticket, err := lease.Detach(ctx, waits)
	if err != nil {
		return err // and the document is free when the lease ends
	}
	return s.push(ctx, file, ticket) // if that fails, the document is free after waits
}

// work is the worker. Its first try has the lock without waiting. If another worker has had the ticket and has died, or the job has waited
// for too long, it waits as any other owner.
func work(ctx context.Context, s *site, locks *holdfast.Manager, document *holdfast.Mutex) (err error) {
	job, file, ticket, err := s.take(ctx)
	if err != nil {
		return err
	}
	lease, err := locks.Attach(ctx, ticket)
	if errors.Is(err, holdfast.ErrLeaseLost) {
		fmt.Println("finds the ticket used")
		lease, err = document.Lock(ctx)
	}
	if err != nil {
		return err // the queue hands the job out again
	}
	defer lease.UnlockInto(ctx, &err)
	return s.publish(lease.Context(ctx), job, file)
}

// site is a document with a place for one uploaded file, and the queue of jobs. In Redis, for a database and a queue that hands a job out
// again if its worker dies.
type site struct {
	client *redis.Client
	prefix string
}

func (s *site) upload(ctx context.Context, file string) error {
	fmt.Println("has uploaded", file)
	return s.client.Set(ctx, s.prefix+"uploaded", file, 0).Err()
}

func (s *site) push(ctx context.Context, file, ticket string) error {
	return s.client.LPush(ctx, s.prefix+"jobs", file+" "+ticket).Err()
}

func (s *site) take(ctx context.Context) (job, file, ticket string, err error) {
	job, err = s.client.BLMove(ctx, s.prefix+"jobs", s.prefix+"taken", "right", "left", waits).Result()
	file, ticket, _ = strings.Cut(job, " ")
	return job, file, ticket, err
}

// publish publishes the file that was uploaded, if it is still there.
func (s *site) publish(ctx context.Context, job, file string) error {
	there, err := s.client.Get(ctx, s.prefix+"uploaded").Result()
	if err != nil && !errors.Is(err, redis.Nil) {
		return err
	}
	time.Sleep(takes)
	_, err = s.client.TxPipelined(ctx, func(tx redis.Pipeliner) error {
		if there == file {
			fmt.Println("publishes", file)
			tx.RPush(ctx, s.prefix+"published", file)
			tx.Del(ctx, s.prefix+"uploaded")
		}
		return tx.LRem(ctx, s.prefix+"taken", 0, job).Err()
	})
	return err
}
