package command

import (
	"context"
	"errors"
	"net"
	"runtime"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/internal/lock"
)

// lane is one goroutine that sends batches. It is started by rouseLocked and ends
// when the executor stops or when it comes back from having been stuck.
type lane struct {
	shard  *shard
	wake   chan struct{} // buffered: a lane is woken once per rest
	ctx    context.Context
	cancel context.CancelFunc

	// Guarded by Executor.mu while batch is in flight; else confined to run.
	batch    []*Call
	since    time.Time     // when batch was taken
	stuck    bool          // replaced: it must not take another batch
	stranded bool          // the handlers of its batch were told so
	within   time.Duration // how long batch waits for each reply, see withinLocked; confined to run once it is taken
	dials    bool          // batch may not have got its connection yet, see dialsLocked
	dialed   time.Duration // it had not then, after Executor.epoch; 0: it was not seen without
	made     uint32        // connections that were being made before
	waited   bool          // batch may have to wait for a turn of go-redis's pools first; confined to run likewise

	// Confined to run.
	redo   []*Call // calls that are to be sent again
	merger merger
	took   time.Duration // the shortest exchange of the batch that was answered; 0: none
	sent   time.Time     // when the latest exchange began
	lasted time.Duration // until that one ended, whether it was answered or not
}

func newLane(s *shard) *lane {
	l := &lane{shard: s, wake: make(chan struct{}, 1)}
	l.ctx, l.cancel = context.WithCancel(context.Background())
	return l
}

func (l *lane) run() {
	defer l.cancel()
	<-l.wake
	for l.next() {
		l.send()
		l.settle()
	}
}

// endLocked is the end of a lane. Stop waits for it, unless its connection is dead: then no caller waits for what it sent.
func (l *lane) endLocked() {
	if !l.stranded {
		l.shard.x.lanes.Done()
	}
}

// settle takes the batch, which has ended, out of what others look at, and lets go of its calls.
func (l *lane) settle() {
	s := l.shard
	x := s.x
	x.mu.Lock()
	delete(s.busy, l)
	s.endedLocked(l.sent, l.lasted)
	s.outstanding -= len(l.batch)
	if l.took > 0 {
		if dialed := x.epoch.Add(l.dialed).Sub(l.since); l.dialed > 0 && dialed < l.took {
			s.setUps.add(l.took)
			l.took -= dialed
		}
		if !l.waited {
			x.tookLocked(s, l.took)
		}
		s.doubt.late, s.doubt.pause, s.doubt.again, s.within = false, 0, time.Time{}, 0
		l.took = 0
	}
	x.mu.Unlock()
	if !l.stranded {
		for _, c := range l.batch {
			if r, ok := c.Handler.(Recycler); ok && !c.overdue {
				r.Recycle()
			}
		}
	}
	clear(l.batch)
	clear(l.merger.sorted)
	clear(l.merger.bundles)
	l.batch = l.batch[:0]
}

// next takes a batch, resting until there is one. It reports false when the lane must end.
func (l *lane) next() bool {
	s := l.shard
	x := s.x
	x.mu.Lock()
	defer x.mu.Unlock()
	if l.stuck {
		s.stuck--
		if l.stranded {
			s.stranded--
		}
		l.endLocked()
		return false
	}
	if l.ctx.Err() != nil { // by Stop: every further command would fail
		s.working--
		l.endLocked()
		return false
	}
	for yielded := false; ; {
		switch n := s.queue.len(); {
		case n > 0 && (yielded || s.outstanding < crowd):
			l.batch = s.queue.takeInto(l.batch, s.shareLocked(n))
			l.since = time.Now()
			s.busy[l] = struct{}{}
			l.dials, l.dialed = true, 0
			if x.greets {
				_, l.made = s.connections()
			}
			if other := s.rouseLocked(); other != nil {
				other.wake <- struct{}{}
			}
			l.within, l.waited = s.withinLocked(), len(s.busy) > x.turns
			return true
		case n > 0:
			yielded = true
			x.mu.Unlock()
			runtime.Gosched()
			x.mu.Lock()
		case x.stopped, s.retired:
			s.working--
			l.endLocked()
			return false
		default:
			yielded = false
			s.idle = append(s.idle, l)
			x.mu.Unlock()
			<-l.wake
			x.mu.Lock()
		}
	}
}

// send sends the batch and ends its calls.
func (l *lane) send() {
	if !slices.ContainsFunc(l.batch, func(c *Call) bool { return c.Acks != nil }) {
		l.sendGroup(group{calls: l.batch})
		return
	}
	for _, g := range l.groups() {
		l.sendGroup(g)
	}
}

func (l *lane) sendGroup(g group) {
	if len(g.calls) == 0 {
		return
	}
	l.redo = l.redo[:0]
	g.client = l.shard.x.client
	if g.master != nil {
		g.client = g.master
	}
	g.client, g.hurried = hurry(g.client, l.within, g.acks)
	l.exchange(g, false)
	if len(l.redo) > 0 {
		// The server ran nothing of these calls, so sending them again is safe: each in full, because it may have been restarted,
		// failed over or flushed, and each by itself, because what it said of many need not be true of each.
		g.calls = l.redo
		l.exchange(g, true)
	}
	clear(l.redo)
}

// unmet reports whether the server has run nothing of a bundle, for a reason that need not be there if its calls are sent again, each by
// itself and in full.
func (l *lane) unmet(b *bundle, err error) bool {
	s := l.shard
	if redis.HasErrorPrefix(err, "NOSCRIPT") {
		s.known.remove(b.script)
		return true
	}
	if !b.merged() || !isReply(err) {
		return false
	}
	s.unmerged.Store(time.Now().Add(mergePause).UnixNano())
	outcome := classify(err)
	return outcome == lock.Refused || outcome == lock.Barred || outcome == lock.Denied
}

// group is calls that are sent as one pipeline.
type group struct {
	master *redis.Client // that they go to; nil: through the executor's client, which may be of a type without ==
	calls  []*Call
	acks   *Acks // of all of them; nil: none

	client  Client // the executor's, or master, with a short read timeout if they are hurried
	hurried bool
}

// groups divides a batch: calls to be acknowledged come last, because the replies of a
// pipeline are read together and WAIT can take long. One WAIT is for all that go over
// one connection, since replicas acknowledge in order.
//
// In a cluster these calls go to the master itself: WAIT has no key that would lead it
// there. A redirection is then a refusal, and the caller asks again.
func (l *lane) groups() []group {
	all := []group{{}}
	for _, c := range l.batch {
		if c.Acks == nil {
			all[0].calls = append(all[0].calls, c)
			continue
		}
		master, err := l.masterFor(c)
		if err != nil {
			outcome, err := l.failure(err)
			if !outcome.Final() && outcome != lock.Barred {
				outcome = lock.NotSent
			}
			c.Handler.Replied(c, Reply{Err: err, Outcome: outcome, Sent: time.Now()})
			continue
		}
		i := 1
		for i < len(all) && (all[i].master != master || *all[i].acks != *c.Acks) {
			i++
		}
		if i == len(all) {
			all = append(all, group{master: master, acks: c.Acks})
		}
		all[i].calls = append(all[i].calls, c)
	}
	return all
}

// masterFor returns the server that a call and its WAIT are sent to; nil where there is no
// cluster. It may do I/O: the first call of all has no call before it to learn its master from.
func (l *lane) masterFor(c *Call) (*redis.Client, error) {
	x := l.shard.x
	if x.cluster == nil || c.master != nil {
		return c.master, nil
	}
	return x.cluster.MasterForKey(l.ctx, c.key())
}

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
