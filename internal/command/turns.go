package command

import (
	"errors"
	"net"
	"time"

	"github.com/redis/go-redis/v9"
)

// A request on a dead connection keeps one of the turns of go-redis's pools until go-redis's read timeout. So at most
// half of the turns are given to requests with that read timeout. Those that wait for a server that stands still are not
// counted, since it may answer them; but one turn is left, since their connections may have died meanwhile. Further requests
// are hurried: they have a short read timeout, and their handlers repeat them after it. With each one that runs into it,
// the next hurried request waits twice as long, since the server may stand still, or be farther away than before.

// turnAtMost is how long a hurried request waits for each reply, or lateTrips round trips if that is longer. A doubt
// (doubt.go) is resolved sooner.
const turnAtMost = 250 * time.Millisecond

// turnFor is how long a hurried request waits for each reply of a server that is a round trip of trip away; 0: unknown.
func turnFor(trip time.Duration) time.Duration {
	if trip == 0 {
		return probeWithin
	}
	return max(turnAtMost, lateTrips*trip)
}

// turnsOf is how many connections for requests client may have. Only go-redis's own client of one server says so; for
// any other, turnsOf returns what bounds the lanes anyway.
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

// withinLocked is how long the batch that a lane has just taken may wait for each reply; 0: it is not hurried.
func (s *shard) withinLocked() time.Duration {
	long := len(s.busy) - s.stuck + s.stranded // without lanes that are stuck at a server that stands still
	if long <= min(s.x.turns, maxStranded)/2 && len(s.busy) < s.x.turns {
		return 0
	}
	return max(turnFor(s.trips.least()), s.within)
}

// hurry returns client with a read timeout of within, and of acks on top, and reports whether that is shorter than the
// client's own. A cluster's client cannot be given another read timeout.
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

// ranOut is called when the time of l's hurried batch has run out. It reports whether the handlers are still to be told
// that the batch is stranded.
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
