package main

import (
	"context"
	"fmt"
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

// checkMessages subscribes to the channels of a waiter.
func (d *doctor) checkMessages(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	for _, c := range d.channels() {
		took, err := d.roundTripOf(ctx, c)
		if c.sharded && err != nil && unknown(err) {
			c.sharded = false // before Redis 7
			took, err = d.roundTripOf(ctx, c)
		}
		switch {
		case denied(err):
			d.add(checkMessages, warned, c.grant(d.user), "the user may not use channels %s:*, so waiters poll: they get locks up to a second late", c.family())
		case err != nil:
			d.add(checkMessages, warned, "ACL LOG 10", "no message came back over %s:*, so waiters poll: %s", c.family(), plain(err))
		default:
			d.add(checkMessages, good, "", "%s:* came back in %.2f ms", c.family(), ms(took))
		}
	}
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

// roundTripOf publishes a message and receives it.
func (d *doctor) roundTripOf(ctx context.Context, c channel) (time.Duration, error) {
	subscribe, publish := d.at.client.Subscribe, d.at.client.Publish
	if c.sharded {
		subscribe, publish = d.at.client.SSubscribe, d.at.client.SPublish
	}
	sub := subscribe(ctx, c.name)
	defer sub.Close()
	if _, err := sub.ReceiveTimeout(ctx, 3*time.Second); err != nil {
		return 0, err
	}
	begin := time.Now()
	if err := publish(ctx, c.name, "doctor").Err(); err != nil {
		return 0, err
	}
	_, err := sub.ReceiveTimeout(ctx, 3*time.Second)
	return time.Since(begin), err
}
