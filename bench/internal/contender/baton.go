package contender

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// leastGrant is what a release that grants the lock to another process cannot do without:
// the owner is looked at and replaced, with a TTL, and the other is told.
var leastGrant = redis.NewScript(`if redis.call('hdel', KEYS[1], ARGV[1]) == 0 then return 0 end
redis.call('hset', KEYS[1], ARGV[2], '1')
redis.call('pexpire', KEYS[1], ARGV[3])
redis.call('publish', ARGV[2], '')
return 1`)

// batonContender is no lock, but what no hand-off from process to process can be below:
// processes pass a baton round. Lock waits for the message of the one before, and Unlock sends
// one to the next: by PUBLISH and nothing else, or by leastGrant. Each knows the others, no process writes down which
// of them wait, and the death of one is the end of it. It is for one caller in each process.
type batonContender struct {
	client *redis.Client
	lease  time.Duration
	grants bool // by leastGrant

	once     sync.Once
	fault    error
	sub      *redis.PubSub
	messages <-chan *redis.Message
	name     string
	place    int   // among the processes, from 1
	others   []int // places of those that listen, in order
	has      bool  // the baton
}

func openMessage(address string, _ time.Duration) (Contender, error) {
	return &batonContender{client: redis.NewClient(&redis.Options{Addr: address})}, nil
}

func openGrant(address string, lease time.Duration) (Contender, error) {
	return &batonContender{client: redis.NewClient(&redis.Options{Addr: address}), lease: lease, grants: true}, nil
}

func (c *batonContender) Lock(ctx context.Context, name string) (func(context.Context) error, error) {
	if strings.HasPrefix(name, "warm:") { // no other process to pass it to
		return func(ctx context.Context) error { return c.client.Ping(ctx).Err() }, nil
	}
	if c.once.Do(func() { c.fault = c.meet(ctx, name) }); c.fault != nil {
		return nil, c.fault
	}
	for !c.has || len(c.others) == 0 {
		select {
		case m := <-c.messages:
			c.heard(m.Channel, m.Payload)
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	c.has = false
	return c.pass, nil
}

// channel is that of the process with a place, and its owner id.
func (c *batonContender) channel(place int) string { return c.name + ":" + strconv.Itoa(place) }

// everyone is the channel on which those that come say so.
func (c *batonContender) everyone() string { return c.name + ":all" }

// meet makes the process one of those that pass the baton. Of two processes the later one to listen finds the channel of the
// other, which hears that it has come.
func (c *batonContender) meet(ctx context.Context, name string) error {
	place, err := c.client.Incr(ctx, name+":places").Result()
	if err != nil {
		return err
	}
	c.name, c.place, c.has = name, int(place), place == 1
	if c.has && c.grants {
		if err := c.client.HSet(ctx, name, c.channel(c.place), 1).Err(); err != nil {
			return err
		}
	}
	c.sub = c.client.Subscribe(ctx, c.channel(c.place), c.everyone())
	for range 2 {
		if _, err := c.sub.Receive(ctx); err != nil {
			return err
		}
	}
	c.messages = c.sub.Channel()
	channels, err := c.client.PubSubChannels(ctx, name+":*").Result()
	if err != nil {
		return err
	}
	for _, other := range channels {
		c.heard(c.everyone(), strings.TrimPrefix(other, name+":"))
	}
	return c.client.Publish(ctx, c.everyone(), c.place).Err()
}

// heard handles a message: the baton, or the place of a process that listens.
func (c *batonContender) heard(channel, text string) {
	if channel != c.everyone() {
		c.has = true
		return
	}
	place, err := strconv.Atoi(text)
	if err != nil || place == c.place || slices.Contains(c.others, place) {
		return
	}
	c.others = append(c.others, place)
	slices.Sort(c.others)
}

// next is the place of the one that the baton goes to.
func (c *batonContender) next() int {
	for _, place := range c.others {
		if place > c.place {
			return place
		}
	}
	return c.others[0]
}

func (c *batonContender) pass(ctx context.Context) error {
	other := c.channel(c.next())
	if !c.grants {
		return c.client.Publish(ctx, other, "").Err()
	}
	return owned(leastGrant.Run(ctx, c.client, []string{c.name}, c.channel(c.place), other, millis(c.lease)).Int64())
}

func (c *batonContender) Close() {
	if c.sub != nil {
		_ = c.sub.Close()
	}
	c.client.Close()
}
