package pubsub

import (
	"context"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/internal/journal"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

// patience bounds the wait for what a PING brings to light.
const patience = redistest.Patience

// noReplies are no replies to a command about a channel. go-redis drops some of them, takes some for something else that Redis
// sends, and fails or panics at the others.
var noReplies = map[string]string{
	"nothing":        "",
	"status":         "+OK\r\n",
	"text":           "$2\r\nhi\r\n",
	"message":        "*3\r\n$7\r\nmessage\r\n$1\r\na\r\n$1\r\nx\r\n",
	"other channel":  "*3\r\n$9\r\nsubscribe\r\n$1\r\nx\r\n:1\r\n",
	"number":         ":1\r\n",
	"null":           "_\r\n",
	"empty list":     "*0\r\n",
	"empty push":     ">0\r\n",
	"push of number": ">1\r\n:1\r\n",
	"unknown push":   ">2\r\n+hello\r\n+x\r\n",
	"list of number": "*1\r\n:1\r\n",
	"half a message": "*2\r\n$7\r\nmessage\r\n$1\r\nx\r\n",
	"no count":       "*3\r\n$9\r\nsubscribe\r\n$1\r\nx\r\n$1\r\ny\r\n",
	"of numbers":     "*3\r\n$7\r\nmessage\r\n:1\r\n:2\r\n",
}

// ear is a listener that keeps what it has heard.
type ear chan string

func (e ear) Heard(payload string) {
	select {
	case e <- payload:
	default:
	}
}
func (e ear) Subscribed()  {}
func (e ear) Relied() bool { return false }
func (e ear) Denied()      {}
func (e ear) Unproven()    {}

// oneNode is a cluster of one server.
type oneNode struct{ *redis.Client }

func (n oneNode) MasterForKey(context.Context, string) (*redis.Client, error) { return n.Client, nil }
func (oneNode) ReloadState(context.Context)                                   {}

// channelKind is how the channels are subscribed to, and by which protocol.
type channelKind struct {
	sharded  bool
	protocol int
}

func (k channelKind) String() string {
	if k.sharded {
		return fmt.Sprintf("sharded/RESP%d", k.protocol)
	}
	return fmt.Sprintf("plain/RESP%d", k.protocol)
}

var channelKinds = []channelKind{{false, 2}, {false, 3}, {true, 2}, {true, 3}}

// command returns the name of a command about such channels.
func (k channelKind) command(plain string) redistest.Match {
	if k.sharded {
		plain = "s" + plain
	}
	return redistest.Command(plain)
}

// subscribed returns the channels of the server that have subscribers.
func (k channelKind) subscribed(t *testing.T, srv *redistest.Server) []string {
	if k.sharded {
		return srv.Admin().PubSubShardChannels(t.Context(), "*").Val()
	}
	return srv.Admin().PubSubChannels(t.Context(), "*").Val()
}

// hears publishes to a channel until l hears it.
func (k channelKind) hears(t *testing.T, srv *redistest.Server, channel string, l ear) {
	t.Helper()
	publish := srv.Admin().Publish
	if k.sharded {
		publish = srv.Admin().SPublish
	}
	redistest.Eventually(t, patience, "it hears "+channel, func() bool {
		for len(l) > 0 {
			<-l
		}
		if publish(t.Context(), channel, "x").Val() == 0 {
			return false
		}
		select {
		case <-l:
			return true
		case <-time.After(time.Second): // it went to a connection that has just ended
			return false
		}
	})
}

// through returns a subscriber whose connections lead through a proxy, which has subscribed to the channel first.
func (k channelKind) through(t *testing.T, srv *redistest.Server) (*Subscriber, *redistest.Proxy) {
	if k.sharded && srv.Major() < 7 {
		t.Skip("the server has no sharded channels")
	}
	p := srv.Proxy(t)
	client := p.ClientWith(t, func(o *redis.Options) { o.Protocol = k.protocol })
	c := Config{Client: client, Plain: !k.sharded, Journal: journal.New(slog.New(slog.DiscardHandler)), Lost: func(bool) {}}
	if k.sharded {
		c.Nodes = oneNode{client}
	}
	s := New(c)
	t.Cleanup(func() {
		redistest.Check(t, s.Stop(context.Background()))
	})
	s.Add("first", make(ear, 1))
	redistest.Eventually(t, patience, "the first channel is heard", func() bool { return s.Live("first") })
	return s, p
}

// each runs test for each kind of channels, and each of noReplies.
func each(t *testing.T, test func(t *testing.T, k channelKind, reply string)) {
	for _, k := range channelKinds {
		for name, reply := range noReplies {
			t.Run(fmt.Sprintf("%v/%s", k, name), func(t *testing.T) {
				redistest.InWorlds(t, func(t *testing.T) { test(t, k, reply) })
			})
		}
	}
}

// A channel whose confirmation does not come is subscribed to by a new connection.
func TestSent_NoConfirmation(t *testing.T) {
	each(t, func(t *testing.T, k channelKind, reply string) {
		srv := redistest.Start(t)
		s, p := k.through(t, srv)
		p.Answer(k.command("subscribe"), 1, reply)
		l := make(ear, 1)
		s.Add("a", l)
		redistest.Eventually(t, patience, "it is subscribed", func() bool { return slices.Contains(k.subscribed(t, srv), "a") })
		k.hears(t, srv, "a", l)
	})
}

// Likewise, a channel that was left, without a confirmation, does not stay subscribed.
func TestSent_NoConfirmationOfTheEnd(t *testing.T) {
	each(t, func(t *testing.T, k channelKind, reply string) {
		srv := redistest.Start(t)
		s, p := k.through(t, srv)
		l := make(ear, 1)
		s.Add("a", l)
		redistest.Eventually(t, patience, "it is heard", func() bool { return s.Live("a") })
		p.Answer(k.command("unsubscribe"), 1, reply)
		s.Remove("a", l)
		redistest.Eventually(t, patience, "only the other one is subscribed", func() bool {
			return slices.Equal(k.subscribed(t, srv), []string{"first"}) && s.Live("first")
		})
	})
}

// A channel that is never confirmed does not cause a storm of connections, and the others are heard.
func TestSent_NeverAConfirmation(t *testing.T) {
	for _, k := range channelKinds {
		for name, reply := range noReplies {
			t.Run(fmt.Sprintf("%v/%s", k, name), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					srv := redistest.StartVirtual(t)
					s, p := k.through(t, srv)
					never := redistest.All(k.command("subscribe"), redistest.Containing("never"))
					p.Answer(never, math.MaxInt, reply)
					s.Add("never", make(ear, 1))
					time.Sleep(time.Minute)
					if n := p.Count(never); n < 4 || n > 12 {
						t.Errorf("%d times in a minute", n)
					}
					l := make(ear, 1)
					s.Add("a", l)
					k.hears(t, srv, "a", l)
				})
			})
		}
	}
}
