package contender

import (
	"context"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"
)

var (
	// leastTake makes a caller the owner of a lock that is free, or writes down that it waits.
	leastTake = redis.NewScript(`if redis.call('set', KEYS[1], ARGV[1], 'nx', 'px', ARGV[2]) then return 1 end
redis.call('rpush', KEYS[2], ARGV[1])
return 0`)
	// leastPass makes the one that has waited longest the owner, and tells it.
	leastPass = redis.NewScript(`if redis.call('get', KEYS[1]) ~= ARGV[1] then return 0 end
local next = redis.call('lpop', KEYS[2])
if next then
	redis.call('set', KEYS[1], next, 'px', ARGV[2])
	redis.call('publish', next, '')
else
	redis.call('del', KEYS[1])
end
return 1`)
)

// leastContender is the least lock that processes pass on: two scripts, a queue and a message. It takes for granted that no process
// dies, no caller gives up, no message is lost and no lock expires. What another lock costs more is the price of being safe if one
// of these happens. It is for one caller in each process.
type leastContender struct {
	client   *redis.Client
	lease    time.Duration
	owner    string // and its channel
	sub      *redis.PubSub
	messages <-chan *redis.Message
}

func openLeast(address string, lease time.Duration) (Contender, error) {
	c := &leastContender{
		client: redis.NewClient(&redis.Options{Addr: address}),
		lease:  lease,
		owner:  "least:" + strconv.FormatUint(rand.Uint64(), 36),
	}
	c.sub = c.client.Subscribe(context.Background(), c.owner)
	if _, err := c.sub.Receive(context.Background()); err != nil {
		c.Close()
		return nil, err
	}
	c.messages = c.sub.Channel()
	return c, nil
}

func (c *leastContender) Lock(ctx context.Context, name string) (func(context.Context) error, error) {
	unlock := func(ctx context.Context) error { return owned(c.run(ctx, leastPass, name)) }
	free, err := c.run(ctx, leastTake, name)
	if err != nil || free == 1 {
		return unlock, err
	}
	select {
	case <-c.messages:
		return unlock, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (c *leastContender) run(ctx context.Context, script *redis.Script, name string) (int64, error) {
	return script.Run(ctx, c.client, []string{name, name + ":queue"}, c.owner, millis(c.lease)).Int64()
}

func (c *leastContender) Close() {
	_ = c.sub.Close()
	c.client.Close()
}
