package command

import (
	"context"
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
	if x.cluster != nil && x.located.Load() {
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
