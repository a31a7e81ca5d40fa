// Command leader is one replica of a service with a clock: the leader of the replicas runs a job at each tick, and another replica
// leads if it dies or is cut off. With -watch the program only says who leads, as a load balancer would need it.
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
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
)

const (
	ticks = 6
	every = 100 * time.Millisecond
	lease = time.Second // how long the seat outlives a leader that dies
)

func main() {
	prefix := flag.String("prefix", "leader:", "prefix of the keys in Redis")
	name := flag.String("name", "replica", "what the others are told of this replica: its address, mostly")
	watch := flag.Bool("watch", false, "only say who leads")
	recipe := flag.Bool("recipe", false, "elect with a renewed key, as in recipe.go")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *prefix, *name, *watch, *recipe); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, prefix, name string, watch, recipe bool) error {
	options, err := redis.ParseURL(cmp.Or(os.Getenv("REDIS_URL"), "redis://localhost:6379"))
	if err != nil {
		return err
	}
	options.MaxRetries = -1 // a job is not sent twice
	client := redis.NewClient(options)
	defer client.Close()
	c := &clock{client: client, key: prefix + "ticks"}
	if recipe {
		return electWithKey(ctx, c, prefix+"seat", name)
	}
	locks, err := holdfast.New(client, holdfast.WithLease(lease))
	if err != nil {
		return err
	}
	defer locks.Close(context.Background())

	seat := locks.Election(prefix + "seat")
	if watch {
		follow(ctx, seat)
		return nil
	}
	return seat.Lead(ctx, name, func(ctx context.Context, term *holdfast.Term) error {
		fmt.Println("leads in term", term.Number())
		err := c.run(ctx, term.Number())
		if err != nil {
			fmt.Println("steps down:", err) // and Lead campaigns again, if the term is over
		}
		return err
	})
}

// follow says who leads, until ctx ends.
func follow(ctx context.Context, seat *holdfast.Election) {
	for leader, err := range seat.Observe(ctx) {
		switch {
		case err != nil:
			fmt.Println("does not know who leads:", err)
		case leader.Term == 0:
			fmt.Println("sees no leader")
		default:
			fmt.Println("sees", leader.Value, "lead")
		}
	}
}

// clock runs jobs. Their effects are counts in a hash, one for each tick. In a database, a job's write would have one more condition,
// as here: that no later term has written.
type clock struct {
	client *redis.Client
	key    string
}

var job = redis.NewScript(`
if tonumber(ARGV[2]) < tonumber(redis.call('hget', KEYS[1], 'term') or 0) then
  return 0
end
redis.call('hset', KEYS[1], 'term', ARGV[2], 'last', ARGV[1])
redis.call('hincrby', KEYS[1], ARGV[1], 1)
return 1`)

// run runs the jobs of the ticks that are left, while ctx lasts.
func (c *clock) run(ctx context.Context, term uint64) error {
	next, err := c.next(ctx)
	if err != nil {
		return err
	}
	for tick := time.NewTicker(every); next <= ticks; next++ {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		// However close this is to a look at the context: the process can be paused here, for longer than its lease.
		ran, err := job.Run(ctx, c.client, []string{c.key}, next, term).Bool()
		if err != nil {
			return err
		}
		if !ran {
			return fmt.Errorf("term %d is over, a later leader has run jobs", term)
		}
		fmt.Println("has run tick", next)
	}
	return nil
}

// next returns the tick after the last one whose job was run.
func (c *clock) next(ctx context.Context) (int, error) {
	last, err := c.client.HGet(ctx, c.key, "last").Int()
	if errors.Is(err, redis.Nil) {
		err = nil
	}
	return last + 1, err
}
