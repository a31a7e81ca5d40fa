package command

import (
	"context"
	"errors"
	"slices"
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
	var batch []bundle
	if again || g.acks != nil || sent.UnixNano() < s.unmerged.Load() {
		batch = l.merger.apart(g.calls)
	} else {
		batch = l.merger.divide(g.calls, x.cluster != nil)
	}
	x.batches.Add(1)
	x.commands.Add(uint64(len(batch)))

	cmds := make([]once, len(batch)) // not kept for the next batch: a hook of the client's may keep them
	for i := range batch {
		c := &cmds[i]
		args := batch[i].args(&c.room)
		if again || !s.known.has(batch[i].script) {
			args[argCommand], args[argScript] = eval, batch[i].script.text
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
	pipe := g.client.Pipeline()
	checks := x.checks.of(batch, sent, x.cluster != nil && g.master == nil)
	for i := range cmds {
		_ = pipe.Process(ctx, &cmds[i]) // only queues
		if checks != nil {
			_ = pipe.Process(ctx, &checks[i])
		}
	}
	var ack *once
	if g.acks != nil {
		ack = &once{Cmd: *redis.NewCmd(l.ctx, "wait", g.acks.Replicas, max(1, g.acks.Timeout.Milliseconds()))} // 0 would wait without a limit
		_ = pipe.Process(ctx, ack)
	}
	_, failed := pipe.Exec(ctx)
	l.sent, l.lasted = sent, time.Since(sent)
	x.hungUp(s, failed)
	e := ending{lane: l, acks: g.acks}
	if ack != nil {
		if n, err := ack.Int(); err != nil || n < g.acks.Replicas {
			e.unacked = &Unacked{g.acks.Replicas, n, Legible(err)}
		}
	}
	e.ranOut = g.hurried && isTimeout(failed) && classify(failed) != lock.NotSent && x.ranOut(l)
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
		}
	}
	e.tell()
}

// ending is what the calls of an exchange end with.
type ending struct {
	lane    *lane
	acks    *Acks
	unacked *Unacked
	ranOut  bool // the time of its hurried batch has

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
			e.lane.answeredIn(e.lane.lasted, e.acks)
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
	c.Handler.Replied(c, Reply{Value: value, Err: err, Outcome: outcome, Sent: e.lane.sent, Unacked: e.unacked})
}

// tell tells the executor what the exchange says of the server.
func (e *ending) tell() {
	x := e.lane.shard.x
	switch {
	case e.answered:
		if x.outage.doubt.Load() {
			x.answered()
		}
	case e.failure != nil:
		x.failed(e.lane.sent, e.failure)
	}
	if e.lost {
		x.relocate()
	}
	if e.demoted && x.Events.ReadOnly != nil {
		x.Events.ReadOnly()
	}
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
	if !x.admitted.Load() {
		x.admitted.Store(true)
	}
}

// traced is a lane's context with the values of a caller's: the span of go-redis finds
// its parent, and the end of the caller's context ends nothing here.
type traced struct {
	context.Context
	values context.Context
}

func (t traced) Value(key any) any { return t.values.Value(key) }

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

// shifted reports whether one of the replies to a batch is none that its command gives.
func shifted(batch []bundle, cmds []once) bool {
	for i := range batch {
		if value, err := cmds[i].result(); err == nil && value != nil && !batch[i].fits(value) {
			return true
		}
	}
	return false
}

// errShifted is why a reply is not believed: another one of its batch is none that the script asked for gives, so
// something between the client and Redis has added a reply or left one out, and each may be that to another request.
var errShifted = errors.New("replies out of order: something between the client and Redis adds or loses some")

// scripts is a set of a few scripts. A look is for each request, and a change for each script.
type scripts struct {
	list atomic.Pointer[[]*Script] // does not change; nil: the set is empty
}

func (s *scripts) has(script *Script) bool {
	list := s.list.Load()
	return list != nil && slices.Contains(*list, script)
}

func (s *scripts) add(script *Script) {
	for !s.has(script) {
		old := s.list.Load()
		more := []*Script{script}
		if old != nil {
			more = slices.Concat(*old, more)
		}
		s.list.CompareAndSwap(old, &more)
	}
}

func (s *scripts) remove(script *Script) {
	for s.has(script) {
		old := s.list.Load()
		less := slices.DeleteFunc(slices.Clone(*old), func(other *Script) bool { return other == script })
		s.list.CompareAndSwap(old, &less)
	}
}
