package command

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

// trips are the durations of the latest batches that were answered.
type trips struct {
	latest [4]time.Duration // 0: none yet
	next   int
}

func (t *trips) add(d time.Duration) {
	t.latest[t.next] = d
	t.next = (t.next + 1) % len(t.latest)
}

// least is the shortest of them, and so what the round trip is now: a batch takes longer if it dials,
// if the server stands still or the process does, and the next one that does not corrects that at once.
// It is 0 until Redis has answered.
func (t *trips) least() time.Duration {
	var least time.Duration
	for _, d := range t.latest {
		if d > 0 && (least == 0 || d < least) {
			least = d
		}
	}
	return least
}

// RoundTrip is how long Redis takes to answer, as the latest batches show: in a cluster the master that
// takes longest. It is 0 until Redis has answered.
func (x *Executor) RoundTrip() time.Duration { return time.Duration(x.roundTrip.Load()) }

// FirstAtMost is how long Redis has for its first answer of all: by then the round trip is unknown, and a new
// connection takes about five of them.
const FirstAtMost = 5 * time.Second

// FirstWithin is how much of the time for the first answer of all is left; 0: Redis has answered, or that time is over.
func (x *Executor) FirstWithin() time.Duration {
	if x.RoundTrip() > 0 {
		return 0
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.began.IsZero() {
		return FirstAtMost
	}
	return max(0, FirstAtMost-time.Since(x.began))
}

// tookLocked records how long a batch to s took.
func (x *Executor) tookLocked(s *shard, d time.Duration) {
	s.trips.add(d)
	longest := s.trips.least()
	if len(x.shards) > 1 {
		for _, other := range x.shards {
			longest = max(longest, other.trips.least())
		}
	}
	x.roundTrip.Store(int64(longest))
}

// go-redis makes a connection when a request needs one, and the request waits for that: for a name to be resolved, for TLS, for a
// token of the client's. None of that says that Redis is silent.

// connections is how many requests wait for go-redis to dial for them, and how many ever did. Only a client of one server says so.
func (s *shard) connections() (waiting, made uint32) {
	client := s.x.client
	if s.master != nil {
		client = s.master
	}
	c, ok := client.(interface{ PoolStats() *redis.PoolStats })
	if !ok || s.x.cluster != nil && s.master == nil {
		return 0, 0
	}
	all := c.PoolStats()
	if p := all.PipelineStats; p != nil {
		return p.PendingRequests, p.Misses + all.Misses // in the client's pool, callers of the application wait
	}
	return all.PendingRequests, all.Misses
}

// dialsLocked looks which lanes still wait for the connections that they began with, at at after Executor.epoch. It returns until
// when one did.
func (s *shard) dialsLocked(at time.Duration) (dialed time.Duration) {
	waiting, made := s.connections()
	for l := range s.busy {
		l.dials = l.dials && (waiting > 0 || s.x.greets && made != l.made)
		if l.dials {
			l.dialed = at
		}
		dialed = max(dialed, l.dialed)
	}
	return dialed
}

// greets reports whether client runs code of its user's at the beginning of each connection, after it has dialled.
func greets(client Client) bool {
	switch c := client.(type) {
	case interface{ Options() *redis.Options }:
		o := c.Options()
		return o.OnConnect != nil || o.CredentialsProvider != nil || o.CredentialsProviderContext != nil || o.StreamingCredentialsProvider != nil
	case interface{ Options() *redis.ClusterOptions }:
		o := c.Options()
		return o.OnConnect != nil || o.CredentialsProvider != nil || o.CredentialsProviderContext != nil || o.StreamingCredentialsProvider != nil
	}
	return false
}

// Lag returns how long the server that has key takes to answer: what it took for the latest request
// that has ended, or how long a later one has been unanswered if that is longer. It is 0 as long as
// nothing was sent there.
func (x *Executor) Lag(key string) time.Duration {
	var master *redis.Client
	if x.cluster != nil && x.admitted.Load() {
		master, _ = x.cluster.MasterForKey(context.Background(), key)
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	s := x.shards[master]
	if s == nil {
		return 0
	}
	lag, now := s.lasted, time.Now()
	for l := range s.busy {
		// A request that was sent before the latest one that ended says nothing: its connection is dead.
		if l.since.After(s.latest) {
			lag = max(lag, now.Sub(l.since))
		}
	}
	return lag
}

// endedLocked records that a batch that was sent at sent has ended after lasted.
func (s *shard) endedLocked(sent time.Time, lasted time.Duration) {
	if sent.After(s.latest) {
		s.latest, s.lasted = sent, lasted
	}
}

// outageAfter is how long requests have to remain without an answer before that is an outage.
const outageAfter = time.Second

// outage finds out when requests bring no answer any more, and when they do again. A refusal is an answer. Another request that
// fails, or is overdue, is a suspicion. It becomes an outage when a request that was submitted after
// that comes to nothing as well, outageAfter or more after the first, and no answer came in between.
// So neither one dead connection nor one lost reply is an outage. What costs nearly nothing is the
// answer: one atomic load where nothing is suspected.
type outage struct {
	doubt atomic.Bool // something is suspected, or was refused

	mu    sync.Mutex // guards the following; held while the events are called, which keeps their order
	since time.Time  // when the first request was submitted, or failed
	known time.Time  // when that was noticed
	cause error      // of the latest failure, if it had one
	told  bool       // it is an outage
}

// Failure returns why requests come to nothing, as the latest failure tells it; nil: Redis has answered since
// then, or the failure is that Redis says nothing. It knows nothing without Events.Outage.
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
func (x *Executor) Suspicious() bool {
	o := &x.outage
	if !o.doubt.Load() {
		return false
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	return !o.known.IsZero()
}

// failed records a request, submitted or sent at from, that failed with cause; nil: it is overdue.
func (x *Executor) failed(from time.Time, cause error) {
	o := &x.outage
	if x.Events.Outage == nil || errors.Is(cause, errLapsed) || errors.Is(cause, errStopped) {
		return
	}
	now := time.Now()
	o.mu.Lock()
	defer o.mu.Unlock()
	if cause != nil {
		o.cause = cause
	}
	if Refuses(cause) { // it is there
		o.doubt.Store(true) // of the cause
		x.answersLocked()
		return
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
		x.Events.Outage(cmp.Or(o.cause, x.explain(nil, ErrSilent)))
	}
}

// answered records that Redis has answered.
func (x *Executor) answered() {
	o := &x.outage
	o.mu.Lock()
	defer o.mu.Unlock()
	o.doubt.Store(false)
	o.cause = nil
	x.answersLocked()
}

// answersLocked ends an outage, if there is one.
func (x *Executor) answersLocked() {
	o := &x.outage
	if o.told && x.Events.Answers != nil {
		x.Events.Answers(time.Since(o.since))
	}
	o.since, o.known, o.told = time.Time{}, time.Time{}, false
}

// Silence is why a request has no answer: what other requests have failed with since Redis has answered one, else ErrSilent.
func (x *Executor) Silence() error {
	if failure := x.Failure(); failure != nil {
		return failure
	}
	if x.admitted.Load() {
		return ErrSilent
	}
	return x.explain(nil, ErrSilent)
}

// ErrClientClosed is why no request brings an answer any more.
var ErrClientClosed = redis.ErrClosed

var errNodeGone = errors.New("the client has dropped its connections to this node of the cluster")

// nodeOnly reports whether the client is open, although the connections that a request was to be sent
// over are closed: a cluster's client closes those to a node that has left the cluster.
//
// A cluster's client does not say whether it is closed. But it chooses a node, at random, for a subscription
// to nothing only if it is not, and under a context that has ended it does not dial that node. The node can be
// the one in question, so it is asked again.
func (x *Executor) nodeOnly() bool {
	client, ok := x.client.(prober)
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
	if x.closed.CompareAndSwap(false, true) && x.Events.Closed != nil {
		x.Events.Closed()
	}
}

// Admitted reports whether Redis has run a script for the client before.
func (x *Executor) Admitted() bool { return x.admitted.Load() }
