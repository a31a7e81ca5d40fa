package engine

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/internal/command"
	"github.com/holdfast-go/holdfast/internal/lock"
	"github.com/holdfast-go/holdfast/internal/protocol"
	"github.com/holdfast-go/holdfast/internal/retry"
)

// checkNow asks Redis whether the holds are still there. It asks for what they have, which
// prolongs them by no more than the time of its way there.
func (e *entry) checkNow() {
	now := time.Now()
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, h := range e.lock.Holds() {
		if h.Converting() {
			continue // which side Redis has is not known; the answer to the downgrade says it
		}
		call := e.engine.newRenewal(protocol.RenewScript(h.Kind), h.Rest(now), h)
		e.engine.Executor.Submit(now, call) // refused only once Close has ended all holds
	}
}

// Whether a script may be executed twice.
const (
	Unrepeatable = false
	Repeatable   = true
)

// Ask runs one script and waits for its reply, for at most askPatience (the first of all requests: for as long as its
// answer may take) and not beyond ctx. If the script may be executed twice, a connection that hangs up has it asked once more, and an
// error reply that may pass again and again meanwhile.
func (eng *Engine) Ask(ctx context.Context, name string, repeat bool, script *command.Script, args []any) (any, error) {
	r, _, err := eng.ask(ctx, name, repeat, command.Call{Script: script, Args: args})
	return r.Value, err
}

// ask is Ask with the whole reply, and whether other copies of the request may have been executed or still be.
func (eng *Engine) ask(ctx context.Context, name string, repeat bool, call command.Call) (r command.Reply, strays bool, err error) {
	end := time.Now().Add(max(eng.askPatience(), eng.Executor.FirstWithin()))
	pauses := retry.New()
	for hungUp := false; ; {
		c := call
		c.Patience, c.Dial = time.Until(end), command.FirstAtMost
		q := &question{engine: eng, repeat: repeat, done: make(chan command.Reply, 1)}
		r, err = eng.askOnce(ctx, name, q, &c)
		if err == nil && r.Err == nil {
			return r, strays || q.copied.Load(), nil
		}
		strays = true
		if err == nil {
			eng.Stats.Troubles.Add(1)
			err = eng.explain(name, lock.Because(lock.Unavailable, r.Err))
		}
		if repeat && !hungUp && command.HangsUp(r.Err) { // most likely it had died in the pool
			hungUp = true
			continue
		}
		pause := pauses.NextBackOff()
		if !repeat || !r.Passes() || time.Until(end) < pause || !Sleep(ctx, pause) {
			return command.Reply{}, strays, err
		}
	}
}

// askOnce sends one request and waits for its end.
func (eng *Engine) askOnce(ctx context.Context, name string, q *question, call *command.Call) (command.Reply, error) {
	if ctx.Err() != nil {
		return command.Reply{}, eng.explain(name, lock.Because(lock.Unavailable, contextCauses(ctx)...))
	}
	call.Handler = q
	eng.mu.Lock()
	over := eng.closed
	eng.mu.Unlock()
	if over || !eng.Executor.Submit(time.Now(), call) {
		return command.Reply{}, eng.explain(name, lock.Because(lock.Closed))
	}
	select {
	case r := <-q.done:
		return r, nil
	case <-ctx.Done():
		return command.Reply{}, eng.explain(name, lock.Because(lock.Unavailable, contextCauses(ctx)...))
	}
}

// question is the handler of a call whose answer a caller waits for.
type question struct {
	engine *Engine
	repeat bool
	copies atomic.Int32       // on their way, beside the call itself
	copied atomic.Bool        // there was one
	done   chan command.Reply // buffered for the first event, which counts
}

func (q *question) end(r command.Reply) {
	select {
	case q.done <- r:
	default:
	}
}

// Replied is called by the executor. That a dead connection has ended says nothing while a copy is on its way.
func (q *question) Replied(_ *command.Call, r command.Reply) {
	if lost := r.Outcome == lock.Unknown || r.Outcome == lock.NotSent; q.copies.Add(-1) >= 0 && lost {
		return
	}
	q.end(r)
}

func (q *question) Overdue(*command.Call) {
	q.end(command.Reply{Outcome: lock.Unknown, Err: q.engine.Executor.Silence()})
}

// Stranded is called by the executor when the connection is dead.
func (q *question) Stranded(c *command.Call) {
	if q.repeat {
		q.copies.Add(1)
		q.copied.Store(true)
		if !q.engine.Executor.Submit(time.Now(), &command.Call{Script: c.Script, Args: c.Args, Handler: q, Patience: c.Patience, Dial: c.Dial}) {
			q.copies.Add(-1)
		}
	}
}

// Sleep reports false if ctx ended first.
func Sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
