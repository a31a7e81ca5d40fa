// Command recipe is readers-migrator with the read-write lock that one writes first: a counter of readers, and a flag that keeps new
// ones out while a writer waits or writes. Nothing says which reader a unit of the counter belongs to. So the unit of a reader
// that died stays, and the writer waits.
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
	expiry    = time.Second
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
	lock := &counted{client: client, keys: []string{prefix + "readers", prefix + "writer"}}
	t := &table{client: client, version: prefix + "version", data: prefix + "data"}
	if err := client.MSetNX(ctx, t.version, 1, t.data, 1).Err(); err != nil {
		return err
	}
	if migrate {
		return lock.write(ctx, t.migrate)
	}
	var all errgroup.Group
	for range readers {
		all.Go(func() error {
			for {
				err := lock.read(ctx, t.read)
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

var (
	enterReader = redis.NewScript(`
if redis.call('exists', KEYS[2]) == 1 then return 0 end
redis.call('incr', KEYS[1])
return 1`)
	enterWriter = redis.NewScript(`
redis.call('set', KEYS[2], 'waits', 'px', ARGV[1])
if tonumber(redis.call('get', KEYS[1]) or 0) > 0 then return 0 end
return 1`)
)

type counted struct {
	client *redis.Client
	keys   []string
}

func (c *counted) read(ctx context.Context, fn func(context.Context) error) error {
	if err := c.enter(ctx, enterReader); err != nil {
		return err
	}
	defer c.client.Decr(context.WithoutCancel(ctx), c.keys[0])
	return fn(ctx)
}

func (c *counted) write(ctx context.Context, fn func(context.Context) error) error {
	if err := c.enter(ctx, enterWriter); err != nil {
		return err
	}
	defer c.client.Del(context.WithoutCancel(ctx), c.keys[1])
	return fn(ctx)
}

func (c *counted) enter(ctx context.Context, s *redis.Script) error {
	for {
		entered, err := s.Run(ctx, c.client, c.keys, expiry.Milliseconds()).Bool()
		if err != nil || entered {
			return err
		}
		select {
		case <-time.After(10 * time.Millisecond):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
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
