package command

import (
	"context"
	"errors"

	"github.com/redis/go-redis/v9"
)

// ErrClientClosed is why no request brings an answer any more.
var ErrClientClosed = redis.ErrClosed

// subscribing is what clients have beside a Client.
type subscribing interface {
	Subscribe(ctx context.Context, channels ...string) *redis.PubSub
}

var errNodeGone = errors.New("the client has dropped its connections to this node of the cluster")

// nodeOnly reports whether the client is open, although the connections that a request was to be sent
// over are closed: a cluster's client closes those to a node that has left the cluster.
//
// A cluster's client does not say whether it is closed. But it chooses a node, at random, for a subscription
// to nothing only if it is not, and under a context that has ended it does not dial that node. The node can be
// the one in question, so it is asked again.
func (x *Executor) nodeOnly() bool {
	client, ok := x.client.(subscribing)
	if x.cluster == nil || !ok {
		return false
	}
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	for range choices {
		ps := client.Subscribe(ended)
		err := ps.Ping(ended)
		_ = ps.Close()
		if !errors.Is(err, redis.ErrClosed) {
			return true
		}
	}
	return false
}

// choices is how often a cluster's client chooses a node before it is taken for closed: of three nodes it is not
// the same one each time.
const choices = 16

// OnClosed has f called once, on any goroutine, when the client turns out to be closed. It must be called
// before Submit.
func (x *Executor) OnClosed(f func()) { x.over = f }

// Closed reports whether the client is known to be closed.
func (x *Executor) Closed() bool { return x.closed.Load() }

// CheckClosed is called when a connection could not be made because the client, or a part of it, is closed.
func (x *Executor) CheckClosed() {
	if !x.Closed() && !x.nodeOnly() {
		x.isClosed()
	}
}

// isClosed records that the client is closed.
func (x *Executor) isClosed() {
	if x.closed.CompareAndSwap(false, true) && x.over != nil {
		x.over()
	}
}

// Admitted reports whether Redis has run a script for the client before.
func (x *Executor) Admitted() bool { return x.admitted.Load() }
