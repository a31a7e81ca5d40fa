package command

import (
	"errors"
	"net"
	"time"

	"github.com/redis/go-redis/v9"
)

// A request on a dead connection keeps one of the turns that go-redis's pools have, until go-redis's read timeout.
// So only half of the turns are given to requests that wait for their replies that long. The others have a
// read timeout that is short, and are repeated after it. A server that stands still, or that is farther away than
// before, gets twice the time with each repetition.

// turnAtMost, with lateTrips round trips, is how long such a request waits for each reply. That is longer than a
// doubt takes (doubt.go).
const turnAtMost = 250 * time.Millisecond

// turnFor is how long a request may wait for a reply, whose server is a round trip of trip away; 0: unknown.
func turnFor(trip time.Duration) time.Duration {
	if trip == 0 {
		return probeWithin
	}
	return max(turnAtMost, lateTrips*trip)
}

// turnsOf is how many connections for requests client may have. Of a client that is not one of go-redis's own for
// one server nothing is known.
func turnsOf(client Client) int {
	c, ok := client.(*redis.Client)
	if !ok {
		return maxStranded
	}
	o := c.Options()
	switch n := o.PipelinePoolSize; {
	case n > 0:
		return o.PoolSize + n
	case n == 0:
		return o.PoolSize + redis.DefaultPipelinePoolSize
	}
	return o.PoolSize
}

// withinLocked is how long the batch that a lane has just taken may wait for each reply; 0: as long as the client's
// options say.
func (s *shard) withinLocked() time.Duration {
	long := len(s.busy) - s.stuck + s.stranded // a server that stands still does not count
	if long <= min(s.x.turns, maxStranded)/2 {
		return 0
	}
	return max(turnFor(s.trips.least()), s.within)
}

// hurry returns client with a read timeout of within, and reports whether it is shorter than the client's own. A
// cluster's client has no such thing.
func hurry(client Client, within time.Duration, acks *Acks) (_ Client, hurried bool) {
	c, ok := client.(*redis.Client)
	if !ok || within == 0 {
		return client, false
	}
	if acks != nil {
		within += acks.Timeout
	}
	if own := c.Options().ReadTimeout; own > 0 && own <= within {
		return client, false
	}
	return c.WithTimeout(within), true
}

// isTimeout reports whether err is a read that has taken too long.
func isTimeout(err error) bool {
	var slow net.Error
	return errors.As(err, &slow) && slow.Timeout()
}

// ranOut records that the time of l's batch was too short, and reports whether the handlers have to be told: unless
// they know, because its connection is dead.
func (x *Executor) ranOut(l *lane) bool {
	s := l.shard
	x.mu.Lock()
	if l.stranded {
		x.mu.Unlock()
		return false
	}
	s.within = max(s.within, 2*l.within)
	s.strandLocked(l)
	roused := s.rouseLocked()
	x.mu.Unlock()
	if roused != nil {
		roused.wake <- struct{}{}
	}
	return true
}
