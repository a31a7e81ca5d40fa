package command

import (
	"context"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"
)

// A NAT, a firewall or a load balancer forgets connections that were idle: what is written to them
// vanishes, and nothing says so. go-redis finds out by its read timeout, one connection at a time, and
// hands out the next one that is dead meanwhile. So a batch that stays without answer raises a doubt:
// is the server silent, or are connections dead?
//
//	no answer for silentAfter ──► one new connection, one PING ──► no answer: the server is silent
//	                                                           │   (nothing more is sent; again after a pause)
//	                                                           └─► an answer: connections are dead
//	      Handler.Stranded for each call ◄── the first answer ◄── a PING over each idle connection
//
// The PINGs have a short read timeout: go-redis throws away each connection that does not answer, and
// while a PING is under way nothing else is sent over that connection. A server that stands still, or
// cannot be reached, gets one PING and no second copy of anything.

const (
	// silentAtMost and silentAtLeast bound after how long a batch without answer raises a doubt: a
	// quarter of the least patience of a call, and at least silentTrips round trips. Behind it comes
	// what the repeated call needs: a tick, two handshakes, purgeWithin if the pool is full of dead ones.
	silentAtMost  = 100 * time.Millisecond
	silentAtLeast = 25 * time.Millisecond
	silentTrips   = 2
	// probeWithin is how long a new connection may take for each step of its handshake, and to answer, or as long as the
	// pause before, which grows: the server may be farther away than it was.
	probeWithin = 500 * time.Millisecond
	// lateAfter, with lateTrips round trips, is what a new connection takes where nothing is wrong: to be made,
	// to introduce itself and to answer.
	lateAfter = 25 * time.Millisecond
	lateTrips = 8
	// purgeWithin is how long an idle connection may take to answer, once a new one has.
	purgeWithin = 100 * time.Millisecond
	// purgeRounds is how often idle connections are looked at: dead ones can fill the pool, so that a
	// new connection has to wait for the end of the first round.
	purgeRounds = 3
	// purgeMost bounds the PINGs of a round.
	purgeMost = 64
	// doubtAgain is the pause between two doubts of which no batch was answered; it doubles, up to
	// doubtRarely.
	doubtAgain  = 100 * time.Millisecond
	doubtRarely = 2 * time.Second
)

// doubt is what is known of it for one master. It is guarded by Executor.mu.
type doubt struct {
	resolving bool          // a goroutine finds out
	purging   bool          // a lane does, see hungUp
	late      bool          // a new connection was answered, late, and no batch since
	pause     time.Duration // the latest; 0: a batch was answered since
	again     time.Time     // not before
}

// silentAfter is after how long without answer a batch raises a doubt.
func (s *shard) silentAfter() time.Duration {
	return max(silentAtLeast, min(s.hasty/4, silentAtMost), silentTrips*s.trips.least()) + s.acks
}

// doubtedLocked has a doubt about s resolved, unless that is under way.
func (s *shard) doubtedLocked(now time.Time) {
	x := s.x
	if s.doubt.resolving || now.Before(s.doubt.again) || x.stopped {
		return
	}
	s.doubt.resolving = true
	within := max(probeWithin, 2*silentTrips*x.RoundTrip(), s.doubt.pause, s.setUps.least())
	x.lanes.Go(func() { x.resolve(s, now, within) })
}

// resolve finds out whether the server answers over a new connection, and ends with s as it was or with
// connections that work.
func (x *Executor) resolve(s *shard, asked time.Time, within time.Duration) {
	late := false
	if client := x.serverOf(s); client != nil && x.answers(client, within) {
		if late = x.late(s, asked); !late && x.silent(s, asked) {
			x.purge(client)
			x.strand(s, asked)
		}
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	d := &s.doubt
	d.resolving = false
	if late {
		d.again = time.Time{} // the next tick asks
		return
	}
	d.pause = min(max(doubtAgain, 2*d.pause), doubtRarely)
	d.again = time.Now().Add(d.pause)
}

// late reports whether the answer to what was asked at asked says little: it took so long that the server, or
// this process, stood still meanwhile, and the batches may be answered in a moment. A second one in a row counts.
func (x *Executor) late(s *shard, asked time.Time) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	again := s.doubt.late
	s.doubt.late = !again && time.Since(asked) > lateAfter+lateTrips*s.trips.least()+2*s.setUps.least()
	return s.doubt.late
}

// prober is what is used of a client, beside pipelines, to resolve a doubt, and to find out that it is closed.
type prober interface {
	Client
	Subscribe(ctx context.Context, channels ...string) *redis.PubSub
}

// serverOf returns a client of the one server that s is about; nil: none is known.
func (x *Executor) serverOf(s *shard) prober {
	if s.master != nil {
		return s.master
	}
	if x.cluster == nil {
		p, _ := x.client.(prober)
		return p
	}
	x.mu.Lock()
	var silent *lane // for the longest time; without a master, lanes may be of several servers
	for l := range s.busy {
		if silent == nil || l.since.Before(silent.since) {
			silent = l
		}
	}
	var key string
	if silent != nil {
		key = silent.batch[0].key()
	}
	x.mu.Unlock()
	if master, err := x.cluster.MasterForKey(x.life, key); err == nil {
		return master
	}
	return nil
}

// hasty returns client with read and write timeouts of d, if it is one of go-redis's own: a type that
// embeds one may have a Pipeline that does more.
func hasty(client prober, d time.Duration) prober {
	if c, ok := client.(*redis.Client); ok {
		return c.WithTimeout(d)
	}
	return client
}

// answers reports whether the server answers over a new connection. go-redis makes one for each PubSub,
// with the hooks, the TLS and the credentials of the client.
func (x *Executor) answers(client prober, within time.Duration) bool {
	ctx, cancel := context.WithTimeout(x.life, 4*within)
	defer cancel()
	ps := hasty(client, within).Subscribe(ctx) // to nothing
	defer ps.Close()
	unhook := context.AfterFunc(ctx, func() { _ = ps.Close() }) // wakes the reader
	defer unhook()
	err := ps.Ping(ctx)
	if err == nil {
		_, err = ps.ReceiveTimeout(ctx, within)
	}
	return err == nil || isReply(err)
}

// isReply reports whether err is what a server answered.
func isReply(err error) bool {
	var reply redis.Error
	return errors.As(err, &reply)
}

// silent reports whether a batch that was sent before asked is still without answer.
func (x *Executor) silent(s *shard, asked time.Time) bool {
	now := time.Now()
	x.mu.Lock()
	defer x.mu.Unlock()
	for l := range s.busy {
		if s.silentLocked(l, asked, now) {
			return true
		}
	}
	return false
}

// silentLocked reports whether the lane's batch was sent before asked, and has been without answer for
// too long.
func (s *shard) silentLocked(l *lane, asked, now time.Time) bool {
	dials := l.dials && s.setUps.least() > probeWithin // another one would take as long
	return !l.stranded && !dials && !l.since.After(asked) && now.Sub(l.since) >= s.silentAfter()
}

// hungUp is called by a lane with the error of its pipeline. If the other end has closed that connection, it has closed others that
// were idle as well, and what is sent again must not meet one after the other. go-redis looks at a connection that it takes out of
// its pool, but cannot behind TLS.
func (x *Executor) hungUp(s *shard, err error) {
	if !x.where.tls || !HangsUp(err) {
		return
	}
	x.mu.Lock()
	if s.doubt.purging || x.stopped {
		x.mu.Unlock()
		return
	}
	s.doubt.purging = true
	x.lanes.Add(1) // the lane may be stranded, so that Stop does not wait for it
	x.mu.Unlock()
	defer x.lanes.Done()
	if client := x.serverOf(s); client != nil {
		idle := suspects(client) - 1
		for answered := x.pingAll(client, idle); idle > 0; idle-- {
			<-answered
		}
	}
	x.mu.Lock()
	s.doubt.purging = false
	x.mu.Unlock()
}

// purge sends a PING over each idle connection that the next pipelines could get, and one more, if there is any. It
// returns with the first answer; go-redis closes the connections that do not answer.
func (x *Executor) purge(client prober) {
	for range purgeRounds {
		n := suspects(client)
		if n == 1 {
			return // the next pipeline dials, as soon as a turn is free
		}
		answered := x.pingAll(client, n)
		for range n {
			if <-answered {
				return
			}
		}
	}
}

// pingAll sends n PINGs at the same time, each over a connection that no other request uses, and tells of each whether it was answered.
func (x *Executor) pingAll(client prober, n int) (answered <-chan bool) {
	within := max(purgeWithin, silentTrips*x.RoundTrip())
	quick, ends := hasty(client, within), make(chan bool, n)
	for range n {
		x.lanes.Go(func() { ends <- x.pings(quick, 8*within) })
	}
	return ends
}

// pings sends one PING over a connection of the pool, or a new one, and reports whether that answers.
// limit bounds the wait for the connection.
func (x *Executor) pings(client Client, limit time.Duration) bool {
	ctx, cancel := context.WithTimeout(x.life, limit)
	defer cancel()
	pipe := client.Pipeline()
	_ = pipe.Process(ctx, &once{Cmd: *redis.NewCmd(ctx, "ping")})
	_, err := pipe.Exec(ctx)
	return err == nil || isReply(err)
}

// suspects is how many PINGs find a connection that works, if those that idle do not: one for each that
// a pipeline gets before it dials. Pipelines have a pool of their own, and use the client's when that is full.
func suspects(client prober) int {
	c, ok := client.(*redis.Client)
	if !ok {
		return redis.DefaultPipelinePoolSize + 1
	}
	stats, size := c.PoolStats(), c.Options().PipelinePoolSize
	n := stats.IdleConns
	if size >= 0 {
		if size == 0 {
			size = redis.DefaultPipelinePoolSize
		}
		if int(stats.PipelineStats.TotalConns) < size {
			n = 0
		}
		n += stats.PipelineStats.IdleConns
	}
	return min(int(n)+1, purgeMost)
}

// strandLocked has another lane take the place of l, whose batch is stranded.
func (s *shard) strandLocked(l *lane) {
	l.stranded = true
	s.stranded++
	s.x.lanes.Done() // see endLocked
	if !l.stuck {
		l.stuck = true
		s.working--
		s.stuck++
	}
}

// strand tells the handlers of what was sent before asked, and has no answer, that connections were dead.
func (x *Executor) strand(s *shard, asked time.Time) {
	now := time.Now()
	var calls []*Call
	x.mu.Lock()
	for l := range s.busy {
		if s.silentLocked(l, asked, now) {
			s.strandLocked(l)
			calls = append(calls, l.batch...)
		}
	}
	roused := s.rouseLocked()
	x.mu.Unlock()
	if roused != nil {
		roused.wake <- struct{}{}
	}
	for _, c := range calls {
		c.Handler.Stranded(c)
	}
	if x.Events.Stranded != nil && len(calls) > 0 {
		x.Events.Stranded()
	}
}
