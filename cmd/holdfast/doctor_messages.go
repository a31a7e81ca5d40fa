package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/internal/wire"
)

// channel is one that a waiter listens to.
type channel struct {
	name    string
	sharded bool // as the channels of locks are in a cluster of Redis 7
}

// channels are an inbox and the channel of a lock.
func (d *doctor) channels() []channel {
	lock, _ := wire.Channels(d.probe)
	_, cluster := d.at.client.(*redis.ClusterClient)
	return []channel{{"holdfast_inbox:doctor-" + randomName(), false}, {lock, cluster}}
}

func (c channel) family() string {
	family, _, _ := strings.Cut(c.name, ":")
	return family
}

// commands are those that a waiter and a release use.
func (c channel) commands() (subscribe, publish string) {
	if c.sharded {
		return "ssubscribe", "spublish"
	}
	return "subscribe", "publish"
}

// grant is what to type so that the user may use channels like c.
func (c channel) grant(user string) string {
	subscribe, publish := c.commands()
	return fmt.Sprintf("ACL SETUSER %s +%s +%s &%s:*", user, subscribe, publish, c.family())
}

// checkMessages subscribes to the channels of a waiter: of a cluster, to the inbox at each master, with a message that comes
// from the next one.
func (d *doctor) checkMessages(ctx context.Context, nodes []*redis.Client) {
	for _, c := range d.channels() {
		if c.sharded {
			err := d.checkChannel(ctx, c, d.at.client, d.at.client)
			if err == nil || !unknown(err) {
				continue
			}
			c.sharded = false // before Redis 7
		}
		for i, node := range nodes {
			d.node = d.at.name
			if len(nodes) > 1 {
				d.node = node.Options().Addr
			}
			_ = d.checkChannel(ctx, c, node, nodes[(i+1)%len(nodes)])
		}
		d.node = d.at.name
	}
}

// checkChannel returns why a message that goes in at one client does not come out at the other. If the server has no sharded
// channels, it says nothing.
func (d *doctor) checkChannel(ctx context.Context, c channel, to, from redis.UniversalClient) error {
	took, err := roundTripOf(ctx, c, to, from)
	timedOut := net.Error(nil)
	switch {
	case err == nil:
		d.add(checkMessages, good, "", "%s:* came back in %.2f ms", c.family(), ms(took))
	case c.sharded && unknown(err):
	case denied(err):
		d.add(checkMessages, warned, c.grant(d.user), "the user may not use channels %s:*, so waiters poll: they get locks up to a second late", c.family())
	case errors.As(err, &timedOut) && timedOut.Timeout():
		subscribe, publish := c.commands()
		d.add(checkMessages, warned, "", "no message of %s to %s:* came back within %v, so waiters poll: does a proxy, or a server that has left its cluster, answer %s and forward nothing?",
			strings.ToUpper(publish), c.family(), messageTime, strings.ToUpper(subscribe))
	default:
		d.add(checkMessages, warned, "ACL LOG 10", "no message came back over %s:*, so waiters poll: %s", c.family(), plain(err))
	}
	return err
}

// checkMessagesAs finds out whether another user may use these channels.
func (d *doctor) checkMessagesAs(ctx context.Context) {
	for _, c := range d.channels() {
		subscribe, publish := c.commands()
		refused, err := d.dryRun(ctx, subscribe, c.name)
		if err == nil && !refused {
			refused, err = d.dryRun(ctx, publish, c.name, "doctor")
		}
		switch {
		case err != nil:
			d.add(checkMessages, note, "", "not checked: ACL DRYRUN says: %s", plain(err))
		case refused:
			d.add(checkMessages, warned, c.grant(d.user), "the user %s may not use channels %s:*, so waiters poll: they get locks up to a second late", d.user, c.family())
		default:
			d.add(checkMessages, good, "", "the user %s may use %s:*", d.user, c.family())
		}
	}
}

// messageTime is how long a message may take.
const messageTime = 3 * time.Second

// roundTripOf publishes a message at one client and receives it at the other.
func roundTripOf(ctx context.Context, c channel, to, from redis.UniversalClient) (time.Duration, error) {
	subscribe, publish := to.Subscribe, from.Publish
	if c.sharded {
		subscribe, publish = to.SSubscribe, from.SPublish
	}
	sub := subscribe(ctx, c.name)
	defer sub.Close()
	if _, err := sub.ReceiveTimeout(ctx, messageTime); err != nil {
		return 0, err
	}
	begin := time.Now()
	if err := publish(ctx, c.name, "doctor").Err(); err != nil {
		return 0, err
	}
	_, err := sub.ReceiveTimeout(ctx, messageTime)
	return time.Since(begin), err
}
