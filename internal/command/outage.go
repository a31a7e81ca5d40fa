package command

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

// outageAfter is how long requests have to remain without an answer before that is an outage.
const outageAfter = time.Second

// outage finds out when requests bring no answer any more, and when they do again. A request that
// fails or is overdue is a suspicion. It becomes an outage when a request that was submitted after
// that comes to nothing as well, outageAfter or more after the first, and no answer came in between.
// So neither one dead connection nor one lost reply is an outage. What costs nearly nothing is the
// answer: one atomic load where nothing is suspected.
type outage struct {
	began func(cause error)          // called under mu, which keeps the order, with nil if Redis says nothing; nil: nothing is told
	ended func(lasted time.Duration) // likewise
	doubt atomic.Bool                // something is suspected

	mu    sync.Mutex // guards the following
	since time.Time  // when the first request was submitted, or failed
	known time.Time  // when that was noticed
	cause error      // of the latest failure, if it had one
	told  bool       // it is an outage
}

// OnOutage has began and ended called, in turns and on goroutines of the executor, when Redis does not answer any
// more and when it answers again. They must not block. It must be called before Submit.
func (x *Executor) OnOutage(began func(cause error), ended func(lasted time.Duration)) {
	x.outage.began = func(cause error) {
		if cause == nil {
			cause = x.explain(nil, ErrSilent)
		}
		began(cause)
	}
	x.outage.ended = ended
}

// Failure returns why requests come to nothing, as the latest failure tells it; nil: Redis has answered since
// then, or the failure is that Redis says nothing. It knows nothing without OnOutage.
func (x *Executor) Failure() error {
	o := &x.outage
	if !o.doubt.Load() {
		return nil
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if isSilence(o.cause) {
		return nil
	}
	return o.cause
}

// Suspicious reports whether an outage is suspected, or told.
func (x *Executor) Suspicious() bool { return x.outage.doubt.Load() }

// failed records a request, submitted or sent at from, that failed with cause; nil: it is overdue.
func (o *outage) failed(from time.Time, cause error) {
	if o.began == nil || errors.Is(cause, errLapsed) || errors.Is(cause, errStopped) {
		return
	}
	now := time.Now()
	o.mu.Lock()
	defer o.mu.Unlock()
	if cause != nil {
		o.cause = cause
	}
	switch {
	case o.known.IsZero():
		o.since, o.known = now, now
		if cause == nil {
			o.since = from
		}
		o.doubt.Store(true)
	case !o.told && from.After(o.known) && now.Sub(o.since) >= outageAfter:
		o.told = true
		o.began(o.cause)
	}
}

// answered records that Redis has answered.
func (o *outage) answered() {
	if !o.doubt.Load() {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.doubt.Store(false)
	if o.told {
		o.ended(time.Since(o.since))
	}
	o.since, o.known, o.cause, o.told = time.Time{}, time.Time{}, nil, false
}

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
