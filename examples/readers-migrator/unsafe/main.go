// Command unsafe is readers-migrator without a lock: readers see half a migration.
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
)

const (
	readers   = 5
	reading   = 5 * time.Millisecond
	migrating = 300 * time.Millisecond
)

func main() {
	prefix := flag.String("prefix", "readers-migrator:", "prefix of the keys in Redis")
	migrate := flag.Bool("migrate", false, "migrate to schema 2")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *prefix, *migrate); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, prefix string, migrate bool) error {
	options, err := redis.ParseURL(cmp.Or(os.Getenv("REDIS_URL"), "redis://localhost:6379"))
	if err != nil {
		return err
	}
	client := redis.NewClient(options)
	defer client.Close()
	t := &table{client: client, version: prefix + "version", data: prefix + "data"}
	if err := client.MSetNX(ctx, t.version, 1, t.data, 1).Err(); err != nil {
		return err
	}
	if migrate {
		return t.migrate(ctx)
	}
	var all errgroup.Group
	for range readers {
		all.Go(func() error {
			for {
				err := t.read(ctx)
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
