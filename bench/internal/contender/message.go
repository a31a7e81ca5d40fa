package contender

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// messageContender is no lock, but what no hand-over from process to process can be
// below: two of them pass a baton. Unlock publishes a message to the other, and Lock waits
// for the other's. Nothing is kept in Redis, and the death of one is the end of it.
type messageContender struct {
	client *redis.Client

	once     sync.Once
	fault    error
	first    bool // has the baton to begin with
	sub      *redis.PubSub
	messages <-chan *redis.Message
	other    string // the channel of the other
}

func openMessage(address string, _ time.Duration) (Contender, error) {
	return &messageContender{client: redis.NewClient(&redis.Options{Addr: address})}, nil
}

func (c *messageContender) Lock(ctx context.Context, name string) (func(context.Context) error, error) {
	if strings.HasPrefix(name, "warm:") { // nobody to pass it to
		return func(ctx context.Context) error { return c.client.Ping(ctx).Err() }, nil
	}
	if c.once.Do(func() { c.fault = c.meet(ctx, name) }); c.fault != nil {
		return nil, c.fault
	}
	if c.first {
		c.first = false
		return c.pass, nil
	}
	select {
	case <-c.messages:
		return c.pass, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// meet waits until the other listens as well.
func (c *messageContender) meet(ctx context.Context, name string) error {
	place, err := c.client.Incr(ctx, name).Result()
	if err != nil {
		return err
	}
	if place > 2 {
		return fmt.Errorf("message: a baton for two, and this is number %d", place)
	}
	c.first = place == 1
	c.other = fmt.Sprint(name, ":", 3-place)
	c.sub = c.client.Subscribe(ctx, fmt.Sprint(name, ":", place))
	if _, err := c.sub.Receive(ctx); err != nil {
		return err
	}
	c.messages = c.sub.Channel()
	for {
		n, err := c.client.PubSubNumSub(ctx, c.other).Result()
		if err != nil || n[c.other] > 0 {
			return err
		}
		time.Sleep(time.Millisecond)
	}
}

func (c *messageContender) pass(ctx context.Context) error {
	return c.client.Publish(ctx, c.other, "").Err()
}

func (c *messageContender) Close() {
	if c.sub != nil {
		_ = c.sub.Close()
	}
	c.client.Close()
}
