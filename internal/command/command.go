// Package command runs scripts on Redis for all callers of the process.
//
// go-redis can neither be interrupted nor be kept from sending a command twice by
// its defaults, so no caller ever stands inside it. A caller submits a Call, and
// its Handler gets the end: Replied, exactly once, and Overdue before that if the reply takes
// longer than the call's patience. What to do about a late reply is the caller's
// decision, because only the caller knows whether the script may be repeated.
//
// Calls are sent by a few lanes, goroutines that each take what is queued and send
// it as one pipeline: while one batch is in flight the next fills (group commit).
// A single caller finds an idle lane and pays a direct call and two goroutine
// switches. In a cluster every master has a queue and lanes of its own, so that a
// slow or dead master does not delay the calls of others.
package command

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/internal/lock"
)

// Client is the part of a go-redis client that an Executor uses.
type Client interface {
	Pipeline() redis.Pipeliner
}

// Handler gets the end of a call. Its methods run on the executor's
// goroutines and must not block.
type Handler interface {
	// Replied ends the call. It is called once, unless Submit returned false.
	Replied(c *Call, r Reply)
	// Overdue is called at most once, when the call has been unanswered for its
	// patience. Replied mostly follows. Both can run at the same time, and where others of its
	// batch are still under way Replied can even have come before.
	Overdue(c *Call)
	// Stranded is called at most once, when the call is without answer although the server answers
	// over other connections: the one that it was sent over is most likely dead; or when a hurried call
	// (lane.go) has run out of time. A handler whose
	// script may run twice submits another call. Replied follows, from that connection or from
	// go-redis's read timeout; as with Overdue it can even have come before.
	Stranded(c *Call)
}

// Recycler is a Handler whose memory can be used again, with that of its call.
type Recycler interface {
	// Recycle is called after Replied, when no goroutine of the executor looks at the call any more. It is not called if Overdue or
	// Stranded was, which may still run.
	Recycle()
}

// Call is one request to run a script. Its fields are set before Submit and not
// changed after by the caller.
type Call struct {
	Script   *Script
	Args     []any // from Script.Args, or Script.Begin
	Room     Room  // for Script.Begin
	Handler  Handler
	Patience time.Duration   // see Handler.Overdue
	Dial     time.Duration   // likewise, as long as it waits for a new connection, and for Patience after that; 0: as Patience
	Trace    context.Context // parent of go-redis's own span when sent alone; nil: none
	Acks     *Acks           // nil: none; Patience must allow for them

	master  *redis.Client // that has the key, as far as is known when submitted
	queued  time.Duration // when submitted, after Executor.epoch; guarded by Executor.mu
	Lapses  bool          // an overdue call that is still queued is not sent: its handler submits a new one
	overdue bool          // Overdue was called; guarded by Executor.mu
}

// key is the first key of the call; the others are in the same slot.
func (c *Call) key() string { return c.Args[argFirstKey].(string) }

// How requests are spread. Measured with redis-server on one core and the clients
// on another, see docs/internals/DECISIONS.md.
const (
	// maxLanes is how many batches are in flight to one master: with one, the server
	// idles while replies are handled; beyond four nothing is gained.
	maxLanes = 4
	// crowd is the number of outstanding calls from which a lane yields once before
	// it closes its batch, so that the callers just woken can add theirs, and takes at
	// least that many. With fewer the round trip is the cost and waiting only adds to it.
	// Measured: 8 is worth 45 % more pairs than 32 at 16 callers, and nothing elsewhere.
	crowd = 8
	// nearBatch bounds one pipeline to a server that is near. With larger ones batches differ so much that lanes end together, and
	// then the server and the client wait for each other. Measured: 11 % to 15 % more pairs than with 512 at 1,000 callers.
	nearBatch = 192
	// callTakes is the least that a call in a crowd takes the server.
	callTakes = 2 * time.Microsecond
	// maxBatch bounds one pipeline to a server that is far: it answers no other client meanwhile.
	maxBatch = 512
)

// How trouble is bounded.
const (
	// stuckAfter is how long a batch may be in flight before its lane is replaced. A
	// lane on a dead connection comes back only after go-redis's read timeout, 5 s by
	// default and as long as the user likes.
	stuckAfter = 300 * time.Millisecond
	// giveUpAfter is when go-redis is told to stop waiting for a pool connection or a
	// dial. Sooner would throw away replies that are only late. It does not end a read:
	// that ends with go-redis's read timeout.
	giveUpAfter = 2 * time.Second
	// maxStuck bounds the lanes, and so the user's connections to one master, that can
	// be lost in this way at one time.
	maxStuck = 12
	// maxStranded bounds those of which it is known that their connections are dead: they keep
	// nothing from the server, but a turn each of go-redis's pools.
	maxStranded = 24
	// tick is how often outstanding calls are looked at.
	tick = 25 * time.Millisecond
)

// Events are called on goroutines of the executor, and must not block. One that is nil is not called.
type Events struct {
	Closed   func()                     // the client turned out to be closed; called once
	ReadOnly func()                     // a server that was the master answers that it is not any more
	Stranded func()                     // connections turned out to be dead while others work
	Outage   func(cause error)          // Redis does not answer any more
	Answers  func(lasted time.Duration) // it answers again: called after each Outage, and before the next
}

// Executor sends calls to one Redis deployment. It is safe for concurrent use.
type Executor struct {
	Events Events // set before Submit

	client   Client
	where    where           // the servers of client are, as its options say
	turns    int             // see turnsOf
	greets   bool            // see greets
	epoch    time.Time       // what times of calls are counted from
	cluster  Cluster         // client, if it is one of a cluster; else nil
	admitted atomic.Bool     // Redis has run a script for the client: so one of a cluster knows the slots, and asking it does no I/O
	closed   atomic.Bool     // the client is
	life     context.Context // ends with Stop
	endLife  context.CancelFunc
	lanes    sync.WaitGroup // running lanes

	commands  atomic.Uint64 // commands sent, re-sends included
	batches   atomic.Uint64
	roundTrip atomic.Int64 // see RoundTrip
	outage    outage
	checks    checks

	mu      sync.Mutex               // guards everything below, the shards and the batches of lanes
	shards  map[*redis.Client]*shard // by master; nil: not a cluster, or not admitted yet
	recent  *shard                   // the latest one in use, never retired
	began   time.Time                // the first Submit; zero: there was none
	ticking bool                     // the timer is armed
	timer   *time.Timer
	stopped bool
}

// New returns an executor on client. It does no I/O and starts nothing.
func New(client Client) *Executor {
	x := &Executor{client: client, where: whereOf(client), turns: turnsOf(client), greets: greets(client), epoch: time.Now(), shards: make(map[*redis.Client]*shard)}
	x.cluster, _ = client.(Cluster)
	x.life, x.endLife = context.WithCancel(context.Background())
	return x
}

// Submit queues calls and returns at once. Their patience counts from now, which the caller has read. It reports
// false, and no handler is called, if the executor has been stopped. It may be called with locks held that the
// handlers take.
func (x *Executor) Submit(now time.Time, calls ...*Call) bool {
	if x.cluster != nil {
		x.locate(calls)
	}
	x.mu.Lock()
	if x.stopped {
		x.mu.Unlock()
		return false
	}
	if x.began.IsZero() {
		x.began = now
	}
	if !x.ticking {
		x.armLocked()
	}
	var few [4]*shard
	touched, at := few[:0], now.Sub(x.epoch)
	for _, c := range calls {
		s := x.shardLocked(c.master, now)
		c.queued = at
		s.queueLocked(c)
		if !slices.Contains(touched, s) {
			touched = append(touched, s)
		}
	}
	var some [4]*lane
	roused := some[:0]
	for _, s := range touched {
		if l := s.rouseLocked(); l != nil {
			roused = append(roused, l)
		}
	}
	x.mu.Unlock()
	for _, l := range roused {
		l.wake <- struct{}{}
	}
	return true
}

// spares is how many connections Warm sees to.
const spares = 3

// Warm opens a few connections in the background, if go-redis has not yet. Opening one
// takes several round trips, so the time to do it is before the server is slow: a
// renewal whose connection is busy or dead then finds another. It gives up with ctx.
func (x *Executor) Warm(ctx context.Context) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.stopped {
		return
	}
	client, _ := hurry(x.client, turnFor(x.RoundTrip()), nil)
	for range min(spares, x.turns-1) {
		x.lanes.Go(func() {
			pipe := client.Pipeline() // Stop waits for it
			pipe.Ping(ctx)
			_, _ = pipe.Exec(ctx) // the next user of the connection will see what is wrong
		})
	}
}

// armLocked starts the timer that looks for overdue calls and stuck lanes.
func (x *Executor) armLocked() {
	x.ticking = true
	if x.timer == nil {
		x.timer = time.AfterFunc(tick, x.inspect)
	} else {
		x.timer.Reset(tick)
	}
}

// inspect runs every tick while calls are outstanding, also after Stop: a caller that waits
// for one of them is told in time.
func (x *Executor) inspect() {
	now := time.Now()
	var overdue, lapsed []*Call
	var roused []*lane
	busy, silent := false, false
	x.mu.Lock()
	for _, s := range x.shards {
		if s.outstanding == 0 {
			continue
		}
		busy = true
		var stuck bool
		before := len(lapsed)
		overdue, lapsed, stuck = s.inspectLocked(now, overdue, lapsed)
		s.outstanding -= len(lapsed) - before
		silent = silent || stuck
		if l := s.rouseLocked(); l != nil {
			roused = append(roused, l)
		}
	}
	x.ticking = busy
	if busy {
		x.armLocked()
	}
	x.mu.Unlock()

	for _, l := range roused {
		l.wake <- struct{}{}
	}
	for _, c := range overdue {
		c.Handler.Overdue(c)
	}
	for _, c := range overdue {
		x.failed(x.epoch.Add(c.queued), nil)
	}
	for _, c := range lapsed {
		c.Handler.Replied(c, Reply{Err: errLapsed, Outcome: lock.NotSent})
	}
	if silent {
		x.relocate()
	}
}

// Stop refuses further calls, ends the queued ones as NotSent and waits until
// every lane has returned or ctx is done; a lane that go-redis holds returns when
// go-redis does.
func (x *Executor) Stop(ctx context.Context) error {
	var dropped []*Call
	var idle []*lane
	x.mu.Lock()
	x.stopped = true
	x.endLife()
	for _, s := range x.shards {
		n := s.queue.len()
		dropped = s.queue.takeInto(dropped, n)
		s.outstanding -= n
		idle = append(idle, s.idle...)
		s.idle = nil
		for l := range s.busy {
			l.cancel()
		}
	}
	x.mu.Unlock()

	for _, l := range idle {
		l.wake <- struct{}{}
	}
	returned := make(chan struct{})
	go func() { // ends with the last lane, and handlers, which may be code of the user
		for _, c := range dropped {
			c.Handler.Replied(c, Reply{Err: errStopped, Outcome: lock.NotSent})
		}
		x.lanes.Wait()
		close(returned)
	}()
	select {
	case <-returned:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Commands returns how many commands were sent, in how many batches.
func (x *Executor) Commands() (commands, batches uint64) {
	return x.commands.Load(), x.batches.Load()
}
