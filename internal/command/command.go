// Package command runs scripts on Redis for everybody in the process.
//
// go-redis can neither be interrupted nor be kept from sending a command twice by
// its defaults, so no caller ever stands inside it. A caller submits a Call and is
// told its end: Replied, exactly once, and Overdue before that if the reply takes
// longer than the call's patience. What to do about a late reply is the caller's
// decision, because only the caller knows whether the script may be repeated.
//
// Calls are sent by a few lanes, goroutines that each take what is queued and send
// it as one pipeline: while one batch is in flight the next fills (group commit).
// A single caller finds an idle lane and pays a direct call and two goroutine
// switches.
package command

import (
	"context"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// Client is the part of a go-redis client that an Executor uses; *redis.Client,
// *redis.ClusterClient and *redis.Ring have it.
type Client interface {
	Pipeline() redis.Pipeliner
}

// Handler is told what becomes of a call. Its methods run on the executor's
// goroutines and must not block.
type Handler interface {
	// Replied ends the call. It is called once, unless Submit returned false.
	Replied(c *Call, r Reply)
	// Overdue is called at most once, when the call has been unanswered for its
	// patience. Replied still follows, and can even run at the same time.
	Overdue(c *Call)
}

// Call is one request to run a script. Its fields are set before Submit and not
// changed after.
type Call struct {
	Script   *Script
	Args     []any // from Script.Args
	Handler  Handler
	Patience time.Duration   // see Handler.Overdue
	Trace    context.Context // parent of go-redis's own span when sent alone; nil: none

	queued  time.Time // when submitted; guarded by Executor.mu
	overdue bool      // Overdue was called; guarded by Executor.mu
}

// How requests are spread. Measured with redis-server on one core and the clients
// on another, see docs/ARCHITECTURE.md.
const (
	// maxLanes is how many batches are in flight: with one, the server idles while
	// replies are handled; beyond four nothing is gained.
	maxLanes = 4
	// crowd is the number of outstanding calls from which a lane yields once before
	// it closes its batch, so that the callers just woken can add theirs, and takes at
	// least that many. With fewer the round trip is the cost and waiting only adds to it.
	// Measured: 8 is worth 45 % more pairs than 32 at 16 callers, and nothing elsewhere.
	crowd = 8
	// maxBatch bounds one pipeline: the server answers nobody else meanwhile.
	maxBatch = 512
)

// How trouble is bounded.
const (
	// stuckAfter is how long a batch may be in flight before its lane is replaced. A
	// lane on a dead connection comes back only after go-redis's read timeout, 5 s by
	// default and as long as the user likes.
	stuckAfter = 300 * time.Millisecond
	// giveUpAfter is when go-redis is told to stop waiting for a pool connection or a
	// dial. It can end neither sooner without throwing away a reply that is only late,
	// nor at all while it reads: that ends with the read timeout.
	giveUpAfter = 2 * time.Second
	// maxStuck bounds the lanes, and so the user's connections, that can be lost in
	// this way at one time.
	maxStuck = 12
	// tick is how often outstanding calls are looked at.
	tick = 25 * time.Millisecond
)

// Executor sends calls to one Redis deployment. It is safe for concurrent use.
type Executor struct {
	client Client
	lanes  sync.WaitGroup // running lanes
	known  sync.Map       // *Script that the server has been sent in full, as keys

	commands Counter // commands sent, re-sends included
	batches  Counter

	mu          sync.Mutex // guards everything below and the batches of lanes
	queue       queue
	idle        []*lane
	busy        map[*lane]struct{} // lanes with a batch in flight
	working     int                // lanes that count towards maxLanes: running, not stuck
	stuck       int                // lanes that have been replaced and not yet returned
	outstanding int                // calls queued or in flight
	ticking     bool               // the timer is armed
	timer       *time.Timer
	stopped     bool
}

// New returns an executor on client. It does no I/O and starts nothing.
func New(client Client) *Executor {
	return &Executor{client: client, busy: make(map[*lane]struct{})}
}

// Submit queues calls and returns at once. It reports
// false, and no handler is called, if the executor has been stopped. It may be called
// with locks held that the handlers take.
func (x *Executor) Submit(calls ...*Call) bool {
	now := time.Now()
	x.mu.Lock()
	if x.stopped {
		x.mu.Unlock()
		return false
	}
	for _, c := range calls {
		c.queued = now
		x.queue.push(c)
	}
	x.outstanding += len(calls)
	if !x.ticking {
		x.armLocked()
	}
	l := x.rouseLocked()
	x.mu.Unlock()
	if l != nil {
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
	for range spares {
		x.lanes.Go(func() {
			pipe := x.client.Pipeline()
			pipe.Ping(ctx)
			_, _ = pipe.Exec(ctx) // whoever needs the connection will see what is wrong
		})
	}
}

// rouseLocked takes an idle lane, or starts one, if there is work for it. The
// caller sends to the lane's wake after unlocking; it never blocks.
func (x *Executor) rouseLocked() *lane {
	if x.queue.len() == 0 {
		return nil
	}
	if n := len(x.idle); n > 0 {
		l := x.idle[n-1] // the last to rest: its stack and connection are warm
		x.idle = x.idle[:n-1]
		return l
	}
	if x.working >= maxLanes || x.stuck >= maxStuck {
		return nil
	}
	l := newLane(x)
	x.working++
	x.lanes.Go(l.run)
	return l
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

// inspect runs every tick while calls are outstanding, also after Stop: whoever waits
// for one of them is told in time.
func (x *Executor) inspect() {
	x.mu.Lock()
	if x.outstanding == 0 {
		x.ticking = false
		x.mu.Unlock()
		return
	}
	now := time.Now()
	overdue := x.queue.overdue(now, nil)
	for l := range x.busy {
		overdue = appendOverdue(l.batch, now, overdue)
		d := now.Sub(l.since) // after a pause of the process it jumps over both bounds
		if d >= stuckAfter && !l.stuck {
			l.stuck = true
			x.working--
			x.stuck++
		}
		if d >= giveUpAfter {
			l.cancel()
		}
	}
	l := x.rouseLocked()
	x.armLocked()
	x.mu.Unlock()

	if l != nil {
		l.wake <- struct{}{}
	}
	for _, c := range overdue {
		c.Handler.Overdue(c)
	}
}

// Stop refuses further calls, ends the queued ones as NotSent and waits until
// every lane has returned or ctx is done; a lane that go-redis holds returns when
// go-redis does.
func (x *Executor) Stop(ctx context.Context) error {
	x.mu.Lock()
	x.stopped = true
	dropped := x.queue.take(x.queue.len())
	x.outstanding -= len(dropped)
	idle := x.idle
	x.idle = nil
	for l := range x.busy {
		l.cancel()
	}
	x.mu.Unlock()

	for _, l := range idle {
		l.wake <- struct{}{}
	}
	for _, c := range dropped {
		c.Handler.Replied(c, Reply{Err: errStopped, Outcome: NotSent})
	}
	returned := make(chan struct{})
	go func() { // ends with the last lane
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
