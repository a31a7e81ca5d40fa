package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/internal/lock"
)

// exchange sends a group as one pipeline and ends each call with its own outcome, but for those that it adds to l.redo. The first
// use of a script is sent in full as well: to be told that the server does not know it
// would cost a round trip, at a moment when that can be one too many. Calls that are sent again go each by itself and in full.
func (l *lane) exchange(g group, again bool) {
	s, x, sent := l.shard, l.shard.x, time.Now()
	batch := l.merger.apart(g.calls)
	if !again && g.acks == nil && sent.UnixNano() >= s.unmerged.Load() {
		batch = l.merger.divide(g.calls, x.cluster != nil)
	}
	defer l.merger.clear()
	x.batches.Add(1)
	x.commands.Add(uint64(len(batch)))

	cmds := make([]once, len(batch)) // not kept for the next batch: a hook of the client's may keep them
	for i := range batch {
		c := &cmds[i]
		args := batch[i].args(&c.room)
		if again || !s.known.has(batch[i].script) {
			args = batch[i].script.inFull(args)
		}
		c.Cmd, c.again = *redis.NewCmd(l.ctx, args...), x.cluster != nil && g.master == nil
		c.SetFirstKeyPos(argFirstKey)
	}
	// A pipeline, even of one command: go-redis keeps connections of their own for
	// pipelines, so locks go on when the application has used up its pool.
	ctx := l.ctx
	if len(g.calls) == 1 && g.calls[0].Trace != nil {
		ctx = traced{l.ctx, g.calls[0].Trace}
	}
	client := x.client
	if g.master != nil {
		client = g.master
	}
	client, hurried := hurry(client, l.within, g.acks)
	pipe := client.Pipeline()
	checks := x.checks.of(batch, sent, x.cluster != nil && g.master == nil)
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
	e := ending{lane: l, acks: g.acks, sent: sent, took: time.Since(sent)}
	if ack != nil {
		e.acked, e.ackErr = ack.Int()
		e.ackErr = Legible(e.ackErr)
	}
	l.sent, l.lasted = sent, e.took
	e.ranOut = hurried && isTimeout(failed) && classify(failed) != lock.NotSent && x.ranOut(l)
	distrusted := shifted(batch, cmds) || misplaced(checks)
	if distrusted {
		x.checks.begin(time.Now())
	}
	for i := range batch {
		b := &batch[i]
		value, err := cmds[i].result()
		switch {
		case distrusted && (err == nil || isReply(err)):
			value, err = nil, errShifted
		case err != nil && l.ctx.Err() != nil && errors.Is(err, context.Canceled):
			err = errGaveUp // inspect's doing, not that of a caller's context
		case err == nil && value != nil:
			s.known.add(b.script)
			if b.merged() {
				replies, failures, _ := b.parts(value) // see fits
				l.merger.learn(b, replies)
				e.replies(b, replies, failures)
				continue
			}
		case !again && l.unmet(b, err):
			l.redo = append(l.redo, b.calls...)
			continue
		}
		for _, c := range b.calls {
			if value == nil && err == nil {
				err = noReply(failed) // no script of Holdfast answers nil
			}
			e.replied(c, value, err, b.merged())
			c.leave()
		}
	}
	e.tell()
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

// ending is what the calls of an exchange end with.
type ending struct {
	lane   *lane
	acks   *Acks
	acked  int
	ackErr error
	sent   time.Time
	took   time.Duration
	ranOut bool // the time of its hurried batch has

	answered, lost, demoted bool
	failure                 error // of one of them
}

// replies ends the calls of a merged command.
func (e *ending) replies(b *bundle, replies []any, failures []failure) {
	for _, f := range failures {
		replies[f.call] = f.err
	}
	for i, c := range b.calls {
		switch v := replies[i].(type) {
		case scriptError:
			e.replied(c, nil, v, false)
		case nil:
			e.replied(c, nil, noReply(nil), false)
		default:
			e.replied(c, v, nil, false)
		}
		c.leave()
	}
}

// replied ends a call. whole says that err is about all calls of a command.
func (e *ending) replied(c *Call, value any, err error, whole bool) {
	outcome := lock.Answered
	if err != nil {
		if outcome, err = e.lane.failure(err); outcome == lock.Failed && whole {
			outcome = lock.Unknown // another call may be what fails each time
		}
	}
	switch {
	case outcome == lock.Answered:
		if !e.answered { // before its handler, which may call Warm
			e.lane.answeredIn(e.took, e.acks)
		}
		e.answered = true
	case outcome.Final():
		e.failure = err
	default:
		e.failure = err
		e.lost = true
		e.demoted = e.demoted || isReadOnly(err)
		if e.ranOut {
			c.Handler.Stranded(c)
		}
	}
	c.Handler.Replied(c, Reply{Value: value, Err: err, Outcome: outcome, Sent: e.sent, Acked: e.acked, AckErr: e.ackErr})
}

// tell tells the executor what the exchange says of the server.
func (e *ending) tell() {
	x := e.lane.shard.x
	switch {
	case e.answered:
		x.outage.answered()
	case e.failure != nil:
		x.outage.failed(e.sent, e.failure)
	}
	if e.lost {
		x.relocate()
	}
	if e.demoted && x.demoted != nil {
		x.demoted()
	}
}

// failure says what is known of a request that ended with err, and the error to tell.
func (l *lane) failure(err error) (lock.Outcome, error) {
	x := l.shard.x
	err = x.misfit(err)
	outcome := classify(err)
	switch {
	case outcome == lock.Shut:
		if x.CheckClosed(); !x.Closed() {
			outcome, err = lock.NotSent, errNodeGone
		}
	case outcome == lock.Barred && !x.admitted.Load() && !isReadOnly(err): // a fail-over may be under way
		outcome = lock.Denied
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
// error, when the exchange as a whole ended with cause. It can be Redis's reply to the client's introduction.
func noReply(cause error) error {
	if isReply(cause) {
		return cause
	}
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
	room   Room  // the arguments of a lone call that had a room: one allocation with the command
}

func (*once) NoRetry() bool { return true }

// SetErr is called by go-redis.
func (o *once) SetErr(err error) {
	switch {
	case o.read:
		return
	case err == nil:
		o.read = true // go-redis says so right after reading it, and does not send it again then
	case o.again && (redirects(err) || classify(err) == lock.NotSent || errors.Is(err, redis.ErrClosed)):
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

// checkFor is for how long replies are checked after one that cannot be right. A reply too many stays on its connection,
// and go-redis finds it there when the next batch takes the connection, unless it comes later than that. So checkFor is
// longer than a reply is on its way.
const checkFor = 10 * time.Second

// checks has each command of a batch followed by a check, for some time after replies were out of order: a script that returns
// a text of its own. On a connection that is off by one, the check gets the reply to the command, and the next command gets the
// text, which is a reply of none of Holdfast's scripts. That holds for what such a batch leaves on the connection as well.
type checks struct {
	until atomic.Int64 // nanoseconds since 1970; 0: replies were never out of order
	sent  atomic.Uint64
}

// check is one of them.
type check struct {
	once
	text string
}

func (c *checks) begin(now time.Time) { c.until.Store(now.Add(checkFor).UnixNano()) }

// of returns a check for each of a batch's bundles; nil: none is needed. again is that of their commands.
func (c *checks) of(batch []bundle, now time.Time, again bool) []check {
	if now.UnixNano() >= c.until.Load() {
		return nil
	}
	all := make([]check, len(batch))
	for i, b := range batch {
		text := "check " + strconv.FormatUint(c.sent.Add(1), 10)
		all[i] = check{once{Cmd: *redis.NewCmd(context.Background(), "eval", "return ARGV[1]", 1, b.calls[0].key(), text), again: again}, text}
		all[i].SetFirstKeyPos(argFirstKey)
	}
	return all
}

// misplaced reports whether a check got what is not its text. An error says nothing.
func misplaced(all []check) bool {
	for i := range all {
		if value, err := all[i].result(); err == nil && value != nil && value != all[i].text {
			return true
		}
	}
	return false
}
