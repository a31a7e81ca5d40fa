// Command readers-migrator reads a schema and data of that schema with 5 readers until it is interrupted. With -migrate it
// changes both, one after the other. A read-write lock lets the readers in together and the migrator alone.
package main

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"log"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"
	"golang.org/x/sync/errgroup"

	"github.com/holdfast-go/holdfast"
)

const (
	readers   = 5
	reading   = 5 * time.Millisecond
	migrating = 300 * time.Millisecond
)

func main() {
	prefix := flag.String("prefix", "readers-migrator:", "prefix of the keys in Redis")
	migrate := flag.Bool("migrate", false, "migrate to schema 2")
	recipe := flag.Bool("recipe", false, "lock with a counter of readers, as in recipe.go")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *prefix, *migrate, *recipe); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, prefix string, migrate, recipe bool) error {
	options, err := redis.ParseURL(cmp.Or(os.Getenv("REDIS_URL"), "redis://localhost:6379"))
	if err != nil {
		return err
	}
	client := redis.NewClient(options)
	defer client.Close()
	locks, err := holdfast.New(client, holdfast.WithLease(time.Second)) // how long the lock outlives a reader that dies
	if err != nil {
		return err
	}
	defer locks.Close(context.Background())

	under := func(lock holdfast.Locker) guard {
		return func(ctx context.Context, fn func(context.Context) error) error {
			return holdfast.Do(ctx, lock, func(ctx context.Context, _ *holdfast.Lease) error { return fn(ctx) })
		}
	}
	schema := locks.RWMutex(prefix + "schema")
	reader, writer := under(schema.RLocker()), under(schema)
	if counted := (&counted{client: client, keys: []string{prefix + "readers", prefix + "writer"}}); recipe {
		reader, writer = counted.read, counted.write
	}
	t := &table{client: client, version: prefix + "version", data: prefix + "data"}
	if err := client.MSetNX(ctx, t.version, 1, t.data, 1).Err(); err != nil {
		return err
	}
	if migrate {
		return writer(ctx, t.migrate)
	}
	var all errgroup.Group
	for range readers {
		all.Go(func() error {
			for {
				err := reader(ctx, t.read)
				if ctx.Err() != nil {
					return nil // interrupted
				}
				if err != nil {
					return err
				}
			}
		})
	}
	err = all.Wait()
	fmt.Printf("torn: %d of %d reads\n", t.torn, t.reads)
	return err
}

// guard runs fn under one side of a read-write lock.
type guard func(ctx context.Context, fn func(context.Context) error) error

type table struct {
	client        *redis.Client
	version, data string // keys

	mu          sync.Mutex // guards the following
	schema      int        // the latest
	reads, torn int        // torn: schema and data did not match
}

// read is what a reader does under the lock: it reads which schema there is, and then data that must be of that schema.
func (t *table) read(ctx context.Context) error {
	schema, err := t.client.Get(ctx, t.version).Int()
	if err != nil {
		return err
	}
	time.Sleep(reading)
	data, err := t.client.Get(ctx, t.data).Int()
	if err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.reads++
	if schema != data {
		t.torn++
	}
	if schema > t.schema {
		t.schema = schema
		fmt.Println("sees schema", schema)
	}
	return nil
}

// migrate changes both, one after the other.
func (t *table) migrate(ctx context.Context) error {
	fmt.Println("migrates")
	if err := t.client.Set(ctx, t.version, 2, 0).Err(); err != nil {
		return err
	}
	time.Sleep(migrating)
	if err := t.client.Set(ctx, t.data, 2, 0).Err(); err != nil {
		return err
	}
	fmt.Println("has migrated")
	return nil
}
