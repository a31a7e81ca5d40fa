package command

import (
	"context"
	"runtime"
	"slices"
	"time"
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
	key      string        // the first one of batch, for serverOf: calls that have ended may have no arguments any more
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
			l.key, l.since = l.batch[0].key(), time.Now()
			s.busy[l] = struct{}{}
			l.dials, l.dialed = true, 0
			if x.greets {
				_, l.made = s.connections()
			}
			l.within, l.waited = s.withinLocked(), len(s.busy) > x.turns
			if other := s.rouseLocked(); other != nil {
				other.wake <- struct{}{}
			}
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
	l.exchange(g, false)
	if len(l.redo) > 0 {
		// The server ran nothing of these calls, so sending them again is safe: each in full, because it may have been restarted,
		// failed over or flushed, and each by itself, because what it said of many need not be true of each.
		g.calls = l.redo
		l.exchange(g, true)
	}
	clear(l.redo)
}
