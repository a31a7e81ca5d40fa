package command

import (
	"context"
	"slices"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

// Cluster is what *redis.ClusterClient has beside a Client.
type Cluster interface {
	// MasterForKey answers from the client's table of slots, at once when that has been
	// loaded once.
	MasterForKey(ctx context.Context, key string) (*redis.Client, error)
	// ReloadState has the table loaded again, in the background and not too often.
	ReloadState(ctx context.Context)
}

// shard is the queue of calls for one master and the lanes that send them. Where there
// is no cluster, and until a cluster's slots are known, one shard has all calls. Calls
// travel through the cluster's client anyway, which follows slots that move; which
// shard a call waits in decides only whom it waits with.
type shard struct {
	x        *Executor
	master   *redis.Client
	known    scripts      // that the server has been sent in full
	unmerged atomic.Int64 // until when nothing is merged, nanoseconds since 1970

	// The following is guarded by Executor.mu.

	queue       queue
	idle        []*lane
	busy        map[*lane]struct{} // lanes with a batch in flight
	working     int                // lanes that count towards maxLanes, or the pools' turns: running, not stuck
	stuck       int                // lanes that have been replaced and not yet returned
	stranded    int                // of those, the ones whose connections are dead
	trips       trips              // of the latest batches
	setUps      trips              // of the latest batches that were seen waiting for a new connection
	doubt       doubt              // whether connections are dead
	within      time.Duration      // how long the next hurried batch waits at least, see ranOut
	hasty       time.Duration      // the least patience of a call since there was none
	acks        time.Duration      // likewise, the most that replicas may take to acknowledge one
	outstanding int                // calls queued or in flight
	used        time.Time          // the latest Submit
	latest      time.Time          // when the latest batch that has ended was sent
	lasted      time.Duration      // until that one ended
	retired     bool               // its lanes must end
}

// retireAfter is how long a shard is kept without use: its master may be no master any
// more. It is looked at when there is a new one.
const retireAfter = time.Minute

// locate finds out which master each call is for.
func (x *Executor) locate(calls []*Call) {
	if !x.admitted.Load() {
		return // asking now could do I/O, and the first answer will not be long
	}
	for _, c := range calls {
		c.master, _ = x.cluster.MasterForKey(context.Background(), c.key()) // nil: no master has the slot
	}
}

// relocate has a cluster's slots loaded again. go-redis does so by itself when it is
// redirected, but not when a master has died: it would go on asking that one until its
// table is a minute old.
func (x *Executor) relocate() {
	if x.cluster != nil {
		x.cluster.ReloadState(context.Background())
	}
}

// shardLocked returns the shard of a master.
func (x *Executor) shardLocked(master *redis.Client, now time.Time) *shard {
	if x.recent != nil && x.recent.master == master { // most deployments have only one
		x.recent.used = now
		return x.recent
	}
	s := x.shards[master]
	if s == nil {
		for m, old := range x.shards {
			if old.outstanding == 0 && now.Sub(old.used) > retireAfter {
				delete(x.shards, m)
				old.retireLocked()
			}
		}
		s = &shard{x: x, master: master, busy: make(map[*lane]struct{})}
		x.shards[master] = s
	}
	s.used, x.recent = now, s
	return s
}

// queueLocked queues a call, and takes into account how soon it has to be answered.
func (s *shard) queueLocked(c *Call) {
	if s.outstanding == 0 {
		s.hasty, s.acks = c.Patience, 0
	}
	s.hasty = min(s.hasty, c.Patience)
	if c.Acks != nil {
		s.acks = max(s.acks, c.Acks.Timeout)
	}
	s.queue.calls = append(s.queue.calls, c)
	s.outstanding++
}

// retireLocked ends the lanes of a shard without calls.
func (s *shard) retireLocked() {
	s.retired = true
	for _, l := range s.idle {
		l.wake <- struct{}{} // buffered for it
	}
	s.idle = nil
}

// rouseLocked takes an idle lane, or starts one, if there is work for it. The
// caller sends to the lane's wake after unlocking; it never blocks.
func (s *shard) rouseLocked() *lane {
	if s.queue.len() == 0 {
		return nil
	}
	if n := len(s.idle); n > 0 {
		l := s.idle[n-1] // the last to rest: its stack and connection are warm
		s.idle = s.idle[:n-1]
		return l
	}
	if s.working >= min(maxLanes, s.x.turns) || s.stuck-s.stranded >= maxStuck || s.stranded >= maxStranded {
		return nil
	}
	l := newLane(s)
	s.working++
	s.x.lanes.Add(1)
	go l.run()
	return l
}

// inspectLocked adds the calls that have just become overdue, takes out and adds those that lapse by
// that, and replaces lanes whose batch takes too long; it reports whether there was one.
func (s *shard) inspectLocked(now time.Time, overdue, lapsed []*Call) (_, _ []*Call, silent bool) {
	before, at := len(overdue), now.Sub(s.x.epoch)
	if overdue = appendOverdue(s.queue.calls[s.queue.first:], at, s.dialsLocked(at), overdue); len(overdue) > before {
		lapsed = s.queue.lapsed(lapsed)
	}
	trip := s.trips.least()
	giveUp := max(giveUpAfter, lateTrips*trip)
	if s.x.RoundTrip() == 0 { // the first connection may take longer
		giveUp = FirstAtMost
	}
	for l := range s.busy {
		overdue = appendOverdue(l.batch, at, l.dialed, overdue)
		if s.silentLocked(l, now, now) {
			s.doubtedLocked(now)
		}
		d := now.Sub(l.since) // after a pause of the process it jumps over all bounds
		if d >= max(stuckAfter, silentTrips*trip) && !l.stuck {
			l.stuck = true
			s.working--
			s.stuck++
			silent = true
		}
		patient := at-l.dialed < giveUp && slices.ContainsFunc(l.batch, func(c *Call) bool { return c.Dial > d })
		if d >= giveUp && !patient {
			l.cancel()
		}
	}
	return overdue, lapsed, silent
}

// shareLocked is how much of a queue of n one lane takes: in a crowd up to half of what is outstanding, so that lanes
// overlap; else a fair share, since every connection that is free makes the wait shorter.
func (s *shard) shareLocked(n int) int {
	if s.outstanding >= crowd {
		far := int(s.trips.least() / (maxLanes * callTakes)) // as many in all lanes as the server answers in one trip
		return min(max(crowd, s.outstanding/2), max(nearBatch, far), maxBatch)
	}
	free := 1 + len(s.idle) + min(maxLanes, s.x.turns) - s.working
	return (n + free - 1) / free
}

// queue is a FIFO of calls in one slice. Batches are cut from its front and copied
// out, so the slice is reused and a burst leaves one backing array behind.
type queue struct {
	calls []*Call
	first int // index of the front
}

func (q *queue) len() int { return len(q.calls) - q.first }

// takeInto moves up to n calls from the front to the end of batch.
func (q *queue) takeInto(batch []*Call, n int) []*Call {
	n = min(n, q.len())
	front := q.calls[q.first : q.first+n]
	batch = append(batch, front...)
	clear(front) // do not keep finished calls alive
	q.first += n
	switch {
	case q.first == len(q.calls):
		q.calls, q.first = q.calls[:0], 0
	case q.first > len(q.calls)/2:
		k := copy(q.calls, q.calls[q.first:])
		clear(q.calls[k:])
		q.calls, q.first = q.calls[:k], 0
	}
	return batch
}

// lapsed takes out the calls that lapse and are overdue, and appends them. Without that, calls that are
// repeated every second would pile up behind a server that is silent.
func (q *queue) lapsed(to []*Call) []*Call {
	q.calls = slices.DeleteFunc(q.calls, func(c *Call) bool {
		lapses := c != nil && c.Lapses && c.overdue // those taken already are nil
		if lapses {
			to = append(to, c)
		}
		return lapses
	})
	return to
}

// appendOverdue appends the calls that have just become overdue, at now after Executor.epoch, where the lanes before them waited for
// connections until dialed.
func appendOverdue(calls []*Call, now, dialed time.Duration, to []*Call) []*Call {
	for _, c := range calls {
		if age := now - c.queued; !c.overdue && age >= c.Patience && (age >= c.Dial || now-dialed >= c.Patience) {
			c.overdue = true
			to = append(to, c)
		}
	}
	return to
}
