package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"
)

// lane is one goroutine that sends batches. It is started by rouseLocked and ends
// when the executor stops or when it comes back from having been stuck.
type lane struct {
	shard  *shard
	wake   chan struct{} // buffered: a lane is woken once per rest
	ctx    context.Context
	cancel context.CancelFunc

	// Guarded by Executor.mu.
	batch    []*Call
	since    time.Time     // when batch was taken
	stuck    bool          // replaced: it must not take another batch
	stranded bool          // the handlers of its batch were told so
	within   time.Duration // how long batch waits for each reply, see withinLocked; confined to run once it is taken
	waited   bool          // batch may have to wait for a turn of go-redis's pools first; confined to run likewise

	// Confined to run.
	redo   []*Call       // calls whose script the server did not know
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
	}
}

// endLocked is the end of a lane. Stop waits for it, unless its connection is dead: then no caller waits for what it sent.
func (l *lane) endLocked() {
	if !l.stranded {
		l.shard.x.lanes.Done()
	}
}

// next settles the batch before and takes another, resting until there is one. It
// reports false when the lane must end.
func (l *lane) next() bool {
	s := l.shard
	x := s.x
	x.mu.Lock()
	defer x.mu.Unlock()
	if l.batch != nil {
		delete(s.busy, l)
		s.endedLocked(l.sent, l.lasted)
		s.outstanding -= len(l.batch)
		clear(l.batch)
		l.batch = l.batch[:0]
		if l.took > 0 {
			if !l.waited {
				x.tookLocked(s, l.took)
			}
			s.doubt.late, s.doubt.pause, s.doubt.again, s.within = false, 0, time.Time{}, 0
			l.took = 0
		}
	}
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
		// NOSCRIPT: the server was restarted, failed over or flushed. It ran nothing of
		// these calls, so sending them again, in full, is safe.
		g.calls = l.redo
		l.exchange(g, true)
	}
	clear(l.redo)
}

// exchange sends a group as one pipeline and ends each call with its own outcome. The first
// use of a script is sent in full as well: to be told that the server does not know it
// would cost a round trip, at a moment when that can be one too many.
func (l *lane) exchange(g group, inFull bool) {
	calls, sent := g.calls, time.Now()
	x := l.shard.x
	x.batches.Add(1)
	x.commands.Add(uint64(len(calls)))

	cmds := make([]once, len(calls)) // not kept for the next batch: a hook of the client's may keep them
	for i, c := range calls {
		args := c.Args
		if inFull || !l.shard.known.has(c.Script) {
			args = c.Script.inFull(args)
		}
		cmds[i] = once{Cmd: *redis.NewCmd(l.ctx, args...), again: x.cluster != nil && g.master == nil}
		cmds[i].SetFirstKeyPos(argFirstKey)
	}
	// A pipeline, even of one command: go-redis keeps connections of their own for
	// pipelines, so locks go on when the application has used up its pool.
	ctx := l.ctx
	if len(calls) == 1 && calls[0].Trace != nil {
		ctx = traced{l.ctx, calls[0].Trace}
	}
	client := x.client
	if g.master != nil {
		client = g.master
	}
	client, hurried := hurry(client, l.within, g.acks)
	pipe := client.Pipeline()
	checks := x.checks.of(calls, sent, x.cluster != nil && g.master == nil)
	for i := range cmds {
		_ = pipe.Process(ctx, &cmds[i]) // only queues
		if checks != nil {
			_ = pipe.Process(ctx, &checks[i])
		}
	}
	var ack *once
	if g.acks != nil {
		ack = &once{Cmd: *g.acks.command(l.ctx)}
		_ = pipe.Process(ctx, ack)
	}
	_, failed := pipe.Exec(ctx)
	acked, ackErr := 0, error(nil)
	if ack != nil {
		acked, ackErr = ack.Int()
	}
	lost, demoted, took := false, false, time.Since(sent)
	answered, failure := false, error(nil)
	l.sent, l.lasted = sent, took
	ranOut := hurried && isTimeout(failed) && x.ranOut(l)
	distrusted := shifted(calls, cmds) || misplaced(checks)
	if distrusted {
		x.checks.begin(time.Now())
	}
	for i, c := range calls {
		value, err := cmds[i].result()
		switch {
		case distrusted && (err == nil || isReply(err)):
			value, err = nil, errShifted
		case value == nil && err == nil:
			err = noReply(failed) // no script of Holdfast answers nil
		case err != nil && l.ctx.Err() != nil && errors.Is(err, context.Canceled):
			err = errGaveUp // inspect's doing, not that of a caller's context
		}
		outcome := Answered
		if err != nil {
			if !inFull && isNoScript(err) {
				l.redo = append(l.redo, c)
				continue
			}
			outcome, err = l.failure(err)
		}
		switch {
		case outcome == Answered:
			l.shard.known.add(c.Script)
			if !answered { // before its handler, which may call Warm
				l.answeredIn(took, g.acks)
			}
			answered = true
		case outcome.Final():
			failure = err
		default:
			failure = err
			lost = true
			demoted = demoted || isReadOnly(err)
			if ranOut {
				c.Handler.Stranded(c)
			}
		}
		c.Handler.Replied(c, Reply{
			Value: value, Err: err, Outcome: outcome, Sent: sent,
			Acked: acked, AckErr: Legible(ackErr),
		})
	}
	switch {
	case answered:
		x.outage.answered()
	case failure != nil:
		x.outage.failed(sent, failure)
	}
	if lost {
		x.relocate()
	}
	if demoted && x.demoted != nil {
		x.demoted()
	}
}

// failure says what is known of a request that ended with err, and the error to tell.
func (l *lane) failure(err error) (Outcome, error) {
	x, outcome := l.shard.x, classify(err)
	switch {
	case outcome == Closed:
		if x.CheckClosed(); !x.Closed() {
			outcome, err = NotSent, errNodeGone
		}
	case outcome == Barred && !x.admitted.Load():
		outcome = Denied
	}
	return outcome, x.explain(l.shard, Legible(err))
}

// answeredIn records that Redis has answered a request of a group, which took that long as a whole.
func (l *lane) answeredIn(took time.Duration, acks *Acks) {
	x := l.shard.x
	if acks == nil && (l.took == 0 || took < l.took) {
		l.took = took
		if !l.waited {
			x.roundTrip.CompareAndSwap(0, int64(took))
		}
	}
	x.admit()
}

var errGaveUp = errors.New("no connection in time")

// traced is a lane's context with the values of a caller's: the span of go-redis finds
// its parent, and the end of the caller's context ends nothing here.
type traced struct {
	context.Context
	values context.Context
}

func (t traced) Value(key any) any { return t.values.Value(key) }

// noReply is the error of a command that go-redis left without reply and without
// error, when the exchange as a whole ended with cause.
func noReply(cause error) error {
	return fmt.Errorf("no reply: %w", cmp.Or(cause, io.ErrUnexpectedEOF))
}

// once is a command that go-redis sends at most once. By default it sends a
// command again after a lost reply, silently, so that a script runs twice; this
// method, on the command itself, is the only switch that works for every kind of
// client however it was built. Redirections in a cluster are still followed.
//
// Before that a cluster's client may have tried elsewhere, and it never overwrites an error: of a
// command that was first redirected, or could not be sent, and whose reply was then lost, it would
// report the former. So such an error is kept aside. And when a connection dies in the middle of a
// pipeline, it overwrites the replies that have been read with that error: they stay.
type once struct {
	redis.Cmd
	again  bool  // the client is a cluster's
	read   bool  // the reply has been: it is not an error
	before error // kept aside; nil: none
}

func (*once) NoRetry() bool { return true }

// SetErr is called by go-redis.
func (o *once) SetErr(err error) {
	switch {
	case o.read:
		return
	case err == nil:
		o.read = true // go-redis says so right after reading it, and does not send it again then
	case o.again && (redirects(err) || classify(err) == NotSent || errors.Is(err, redis.ErrClosed)):
		o.before, err = err, nil
	}
	o.Cmd.SetErr(err)
}

// redirects reports whether go-redis follows err to another node of a cluster.
func redirects(err error) bool {
	return err != nil && (redis.HasErrorPrefix(err, "MOVED ") || redis.HasErrorPrefix(err, "ASK "))
}

func (o *once) result() (any, error) {
	value, err := o.Cmd.Result()
	if value == nil && err == nil {
		err = o.before
	}
	return value, err
}
