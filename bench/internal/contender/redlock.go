package contender

import (
	"context"
	"log/slog"
	"math"
	"strings"
	"time"

	"github.com/go-redsync/redsync/v4"
	redsyncredis "github.com/go-redsync/redsync/v4/redis"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
)

// Redlocks are those that lock a majority of several independent servers. Their Open takes the addresses
// of all, with commas between. They are in no other list: the other scenarios have one server.
var Redlocks = []Library{
	{Name: "holdfast-redlock", Open: openHoldfastRedlock, Role: Own},
	{Name: "redsync-redlock", Open: openRedsyncRedlock(0), Direct: []string{"set"}},
	{Name: "redsync-redlock-1ms", Open: openRedsyncRedlock(time.Millisecond), Direct: []string{"set"}},
}

// holdfastRedlock has one manager for each server.
type holdfastRedlock struct {
	clients  []*redis.Client
	managers []*holdfast.Manager
	latest   *holdfast.Redlock // of the name that was asked for last; it has one caller
	name     string
}

func openHoldfastRedlock(addresses string, lease time.Duration) (Contender, error) {
	c := new(holdfastRedlock)
	for address := range strings.SplitSeq(addresses, ",") {
		client := redis.NewClient(&redis.Options{Addr: address})
		c.clients = append(c.clients, client)
		m, err := holdfast.New(client, holdfast.WithLease(lease), holdfast.WithLogger(slog.New(slog.DiscardHandler)))
		if err != nil {
			c.Close()
			return nil, err
		}
		c.managers = append(c.managers, m)
	}
	return c, nil
}

func (c *holdfastRedlock) Lock(ctx context.Context, name string) (func(context.Context) error, error) {
	if c.latest == nil || c.name != name {
		var members []holdfast.Locker
		for _, m := range c.managers {
			members = append(members, m.Mutex(name))
		}
		l, err := holdfast.NewRedlock(members...)
		if err != nil {
			return nil, err
		}
		c.latest, c.name = l, name
	}
	return take(ctx, c.latest)
}

func (c *holdfastRedlock) Close() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second) // one server may be silent
	defer cancel()
	for _, m := range c.managers {
		m.Close(ctx)
	}
	for _, client := range c.clients {
		client.Close()
	}
}

// serverPatience is for how long redsync waits for one server: the upper end of what the description of the
// algorithm advises. Its default is a twentieth of the TTL, 1.5 s here, and it waits for all servers.
const serverPatience = 50 * time.Millisecond

// redsyncRedlock is redsync over several servers, set up as openRedsync does over one.
type redsyncRedlock struct {
	redsyncContender
	clients []*redis.Client
}

func openRedsyncRedlock(pause time.Duration) func(string, time.Duration) (Contender, error) {
	return func(addresses string, lease time.Duration) (Contender, error) {
		c := new(redsyncRedlock)
		var pools []redsyncredis.Pool
		for address := range strings.SplitSeq(addresses, ",") {
			// Its time-out for one server is the deadline of a context.
			client := redis.NewClient(&redis.Options{Addr: address, ContextTimeoutEnabled: true})
			c.clients, pools = append(c.clients, client), append(pools, goredis.NewPool(client))
		}
		c.sync = redsync.New(pools...)
		c.opts = []redsync.Option{redsync.WithExpiry(lease), redsync.WithTries(math.MaxInt),
			redsync.WithTimeoutFactor(float64(serverPatience) / float64(lease))}
		if pause > 0 {
			c.opts = append(c.opts, redsync.WithRetryDelay(pause))
		}
		return c, nil
	}
}

// Lock returns an unlock that waits for a silent server no longer than Lock does, for which redsync has no
// option. If a majority has not answered by then it asks again, for as long as its caller lets it.
func (c *redsyncRedlock) Lock(ctx context.Context, name string) (func(context.Context) error, error) {
	unlock, err := c.redsyncContender.Lock(ctx, name)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context) error {
		soon, cancel := context.WithTimeout(ctx, serverPatience)
		defer cancel()
		if unlock(soon) == nil {
			return nil
		}
		return unlock(ctx)
	}, nil
}

func (c *redsyncRedlock) Close() {
	for _, client := range c.clients {
		client.Close()
	}
}
