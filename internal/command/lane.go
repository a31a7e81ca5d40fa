package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"time"

	"github.com/redis/go-redis/v9"
)

// lane is one goroutine that sends batches. It is started by rouseLocked and ends
// when the executor stops or when it comes back from having been stuck.
type lane struct {
	x      *Executor
	wake   chan struct{} // buffered: a lane is woken once per rest
	ctx    context.Context
	cancel context.CancelFunc

	// Guarded by Executor.mu.
	batch []*Call
	since time.Time // when batch was taken
	stuck bool      // replaced: it must not take another batch

	cmds []*redis.Cmd // of the batch; confined to run
	redo []*Call      // calls whose script the server did not know; confined to run
}

func newLane(x *Executor) *lane {
	l := &lane{x: x, wake: make(chan struct{}, 1)}
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

// next settles the batch before and takes another, resting until there is one. It
// reports false when the lane must end.
func (l *lane) next() bool {
	x := l.x
	x.mu.Lock()
	defer x.mu.Unlock()
	if l.batch != nil {
		delete(x.busy, l)
		x.outstanding -= len(l.batch)
		clear(l.batch)
		l.batch = l.batch[:0]
	}
	if l.stuck {
		x.stuck--
		return false
	}
	if l.ctx.Err() != nil { // by Stop: every further command would fail
		x.working--
		return false
	}
	for yielded := false; ; {
		switch n := x.queue.len(); {
		case n > 0 && (yielded || x.outstanding < crowd):
			l.batch = x.queue.takeInto(l.batch, x.shareLocked(n))
			l.since = time.Now()
			x.busy[l] = struct{}{}
			if other := x.rouseLocked(); other != nil {
				other.wake <- struct{}{}
			}
			return true
		case n > 0:
			yielded = true
			x.mu.Unlock()
			runtime.Gosched()
			x.mu.Lock()
		case x.stopped:
			x.working--
			return false
		default:
			yielded = false
			x.idle = append(x.idle, l)
			x.mu.Unlock()
			<-l.wake
			x.mu.Lock()
		}
	}
}

// shareLocked is how much of a queue of n one lane takes: half of what is outstanding
// in a crowd, so that lanes overlap; else a fair share, since every connection that is
// free makes the wait shorter.
func (x *Executor) shareLocked(n int) int {
	if x.outstanding >= crowd {
		return min(max(crowd, x.outstanding/2), maxBatch)
	}
	free := 1 + len(x.idle) + maxLanes - x.working
	return (n + free - 1) / free
}

// send sends the batch and ends its calls.
func (l *lane) send() {
	l.redo = l.redo[:0]
	l.exchange(l.batch, false)
	if len(l.redo) > 0 {
		// NOSCRIPT: the server was restarted, failed over or flushed. It ran nothing of
		// these calls, so sending them again, in full, is safe.
		l.exchange(l.redo, true)
	}
	clear(l.redo)
}

// exchange sends calls as one pipeline and ends each with its own outcome. The first
// use of a script is sent in full as well: to be told that the server does not know it
// would cost a round trip, at a moment when that can be one too many.
func (l *lane) exchange(calls []*Call, inFull bool) {
	sent := time.Now()
	l.x.batches.Add(1)
	l.x.commands.Add(uint64(len(calls)))

	cmds := l.cmds[:0]
	for _, c := range calls {
		args := c.Args
		if _, known := l.x.known.Load(c.Script); inFull || !known {
			args = c.Script.inFull(args)
		}
		cmd := redis.NewCmd(l.ctx, args...)
		cmd.SetFirstKeyPos(argFirstKey)
		cmds = append(cmds, cmd)
	}
	// A pipeline, even of one command: go-redis keeps connections of their own for
	// pipelines, so locks go on when the application has used up its pool.
	ctx := l.ctx
	if len(calls) == 1 && calls[0].Trace != nil {
		ctx = traced{l.ctx, calls[0].Trace}
	}
	pipe := l.x.client.Pipeline()
	for _, cmd := range cmds {
		_ = pipe.Process(ctx, once{cmd}) // only queues
	}
	_, failed := pipe.Exec(ctx)
	for i, c := range calls {
		value, err := cmds[i].Result()
		switch {
		case value == nil && err == nil:
			err = noReply(failed) // no script of ours answers nil
		case err != nil && l.ctx.Err() != nil && errors.Is(err, context.Canceled):
			err = errGaveUp // inspect's doing, not that of anybody's context
		}
		if !inFull && isNoScript(err) {
			l.redo = append(l.redo, c)
			continue
		}
		if err == nil {
			l.x.know(c.Script)
		}
		c.Handler.Replied(c, Reply{Value: value, Err: err, Outcome: classify(err), Sent: sent})
	}
	clear(cmds)
	l.cmds = cmds[:0]
}

var errGaveUp = errors.New("no connection in time")

// know records that the server has run a script, and so has it by its digest.
func (x *Executor) know(s *Script) {
	if _, known := x.known.Load(s); !known {
		x.known.Store(s, nil)
	}
}

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
type once struct{ *redis.Cmd }

func (once) NoRetry() bool { return true }
