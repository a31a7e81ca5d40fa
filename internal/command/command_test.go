package command

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/internal/lock"
	"github.com/holdfast-go/holdfast/internal/redistest"
	"github.com/redis/go-redis/v9"
)

func TestCall_GetsItsOwnReply(t *testing.T) {
	bubble(t, func(t *testing.T, x *Executor, srv *fakeServer) {
		const n = 2000
		outcomes := make([]*outcome, n)
		for i := range outcomes {
			outcomes[i] = submit(t, x, fmt.Sprint(i), time.Second)
		}
		for i, o := range outcomes {
			r := <-o.replies
			if r.Outcome != lock.Answered || r.Value != fmt.Sprint(i) {
				t.Fatalf("call %d got %v, %v", i, r.Outcome, r.Value)
			}
		}
		commands, batches := x.Commands()
		if commands != n || batches >= n/2 {
			t.Errorf("%d commands in %d batches", commands, batches)
		}
		for _, b := range srv.seen() {
			redistest.WantMost(t, len(b), nearBatch, "a batch of %d")
		}
	})
}

// A few calls at once are shared out over the lanes: each connection that is free makes
// the wait shorter.
func TestSubmit_SharesOutAFewCalls(t *testing.T) {
	bubble(t, func(t *testing.T, x *Executor, srv *fakeServer) {
		o := submitMany(t, x, maxLanes, Call{Script: testScript, Patience: time.Second}, always("k"))
		for range maxLanes {
			<-o.replies
		}
		if got := srv.seen(); len(got) != maxLanes {
			t.Errorf("batches %v", got)
		}
	})
}

func TestOverdue_IsToldOnceAndTheReplyStillComes(t *testing.T) {
	bubble(t, func(t *testing.T, x *Executor, srv *fakeServer) {
		srv.answer = func(ctx context.Context, cmd *redis.Cmd) {
			time.Sleep(2 * time.Second)
			echo(ctx, cmd)
		}
		start := time.Now()
		o := submit(t, x, "k", 200*time.Millisecond)
		if late := (<-o.overdue).Sub(start); late < 200*time.Millisecond || late > 200*time.Millisecond+tick {
			t.Errorf("overdue after %v", late)
		}
		if r := <-o.replies; r.Outcome != lock.Answered || time.Since(start) != 2*time.Second {
			t.Errorf("%v after %v", r.Outcome, time.Since(start))
		}
		if len(o.overdue) != 0 || len(o.replies) != 0 {
			t.Error("told twice")
		}
	})
}

// What is asked for again by itself does not pile up behind a server that is silent, and is not sent any
// more when it answers.
func TestOverdue_Lapses(t *testing.T) {
	frozen(t, func(t *testing.T, x *Executor, thaw chan struct{}) {
		// All lanes that there can be are stuck.
		var stuck []*outcome
		for range maxStuck + maxLanes {
			stuck = append(stuck, submit(t, x, "stuck", time.Minute))
			time.Sleep(2 * stuckAfter)
		}
		before, _ := x.Commands()
		const n = 100
		stays := submit(t, x, "stays", time.Second)
		lapsing := submitMany(t, x, n, Call{Script: testScript, Patience: time.Second, Lapses: true}, always("lapses"))
		time.Sleep(time.Second + tick)
		synctest.Wait()
		if len(lapsing.replies) != n {
			t.Fatalf("%d of %d have lapsed", len(lapsing.replies), n)
		}
		for range n {
			if r := <-lapsing.replies; r.Outcome != lock.NotSent || r.Err == nil {
				t.Fatalf("lapsed as %v, %v", r.Outcome, r.Err)
			}
		}
		close(thaw)
		for _, o := range append(stuck, stays) {
			if r := <-o.replies; r.Outcome != lock.Answered {
				t.Errorf("the others end as %v, %v", r.Outcome, r.Err)
			}
		}
		if commands, _ := x.Commands(); commands-before > uint64(maxLanes+1) {
			t.Errorf("%d commands were sent since", commands-before)
		}
		redistest.Check(t, x.Stop(context.Background()))
	})
}

// A connection that has gone silent holds its lane for as long as go-redis likes. The
// others must be served meanwhile, over new connections.
func TestStuckLane_IsReplaced(t *testing.T) {
	bubble(t, func(t *testing.T, x *Executor, srv *fakeServer) {
		thaw := make(chan struct{})
		srv.answer = func(ctx context.Context, cmd *redis.Cmd) {
			if cmd.Args()[argFirstKey] == "dead" {
				<-thaw
			}
			echo(ctx, cmd)
		}
		var dead []*outcome
		for range maxLanes { // one each: sent before the next is submitted
			dead = append(dead, submit(t, x, "dead", time.Hour))
			synctest.Wait()
		}
		start := time.Now()
		o := submit(t, x, "alive", time.Hour)
		<-o.replies
		redistest.WantMost(t, time.Since(start), stuckAfter+tick, "served after %v")
		close(thaw)
		for _, o := range dead {
			if r := <-o.replies; r.Outcome != lock.Answered {
				t.Errorf("a late reply is %v", r.Outcome)
			}
		}
	})
}

func TestStuckLanes_AreBounded(t *testing.T) {
	bubble(t, func(t *testing.T, x *Executor, srv *fakeServer) {
		thaw := make(chan struct{})
		srv.answer = func(ctx context.Context, cmd *redis.Cmd) { <-thaw; echo(ctx, cmd) }
		var all []*outcome
		for range 60 {
			all = append(all, submit(t, x, "k", time.Hour))
			time.Sleep(stuckAfter)
		}
		redistest.WantMost(t, len(srv.seen()), maxStuck+maxLanes, "%d batches are stuck at once")
		close(thaw)
		for _, o := range all {
			<-o.replies
		}
		synctest.Wait() // a lane settles its batch after its replies
		x.mu.Lock()
		defer x.mu.Unlock()
		s := x.shards[nil]
		if s.stuck != 0 || s.working > maxLanes || s.outstanding != 0 {
			t.Errorf("after the thaw: %d stuck, %d working, %d outstanding", s.stuck, s.working, s.outstanding)
		}
	})
}

// After a pause of the whole process a batch has been in flight for longer than any
// bound at the first look. Its lane must not go on with the context that this ended:
// every later command would fail.
func TestPausedProcess_DoesNotPoisonALane(t *testing.T) {
	bubble(t, func(t *testing.T, x *Executor, srv *fakeServer) {
		thaw := make(chan struct{})
		srv.answer = func(ctx context.Context, cmd *redis.Cmd) {
			<-thaw
			if ctx.Err() != nil {
				cmd.SetErr(ctx.Err()) // as go-redis does before it sends
				return
			}
			echo(ctx, cmd)
		}
		first := submit(t, x, "k", time.Hour)
		synctest.Wait()
		x.mu.Lock()
		for l := range x.shards[nil].busy {
			l.since = l.since.Add(-time.Minute)
		}
		x.mu.Unlock()
		time.Sleep(2 * tick)
		close(thaw)
		<-first.replies
		for range 10 {
			if r := <-submit(t, x, "k", time.Hour).replies; r.Outcome != lock.Answered {
				t.Fatalf("afterwards: %v, %v", r.Outcome, r.Err)
			}
		}
	})
}

// Calls in flight at Stop become overdue in time: a caller may wait for them.
func TestStop_StillTellsOfOverdueCalls(t *testing.T) {
	frozen(t, func(t *testing.T, x *Executor, thaw chan struct{}) {
		o := submit(t, x, "k", 500*time.Millisecond)
		synctest.Wait()
		ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
		defer cancel()
		if err := x.Stop(ctx); err == nil {
			t.Error("Stop did not say that a lane is stuck")
		}
		start := time.Now()
		<-o.overdue
		redistest.WantMost(t, time.Since(start), 500*time.Millisecond, "overdue %v after Stop")
		close(thaw)
		<-o.replies
	})
}

func TestStop_EndsQueuedCallsAndRefusesNewOnes(t *testing.T) {
	frozen(t, func(t *testing.T, x *Executor, thaw chan struct{}) {
		var all []*outcome
		for range maxLanes + 3 {
			all = append(all, submit(t, x, "k", time.Hour))
			synctest.Wait()
		}
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		if err := x.Stop(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Stop with stuck lanes: %v", err)
		}
		if x.Submit(time.Now(), &Call{Script: testScript, Args: testScript.Args(1, "k"), Handler: newOutcome()}) {
			t.Error("a stopped executor took a call")
		}
		for i, o := range all[maxLanes:] {
			if r := <-o.replies; r.Outcome != lock.NotSent {
				t.Errorf("queued call %d: %v", i, r.Outcome)
			}
		}
		close(thaw)
		for _, o := range all[:maxLanes] {
			<-o.replies
		}
		time.Sleep(2 * tick)
		x.mu.Lock()
		defer x.mu.Unlock()
		if x.ticking {
			t.Error("calls are looked for when none is left")
		}
	})
}

// A handler may run code of the user, such as a logger's, that blocks.
func TestStop_DoesNotWaitForHandlersBeyondItsContext(t *testing.T) {
	frozen(t, func(t *testing.T, x *Executor, thaw chan struct{}) {
		for range maxLanes {
			submit(t, x, "k", time.Hour)
			synctest.Wait()
		}
		told := blocker{make(chan struct{}), make(chan struct{})}
		x.Submit(time.Now(), &Call{Script: testScript, Args: testScript.Args(1, "k"), Handler: told, Patience: time.Hour})
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		start := time.Now()
		if err := x.Stop(ctx); !errors.Is(err, context.DeadlineExceeded) || time.Since(start) > time.Second {
			t.Errorf("Stop: %v after %v", err, time.Since(start))
		}
		<-told.called
		close(told.thaw)
		close(thaw)
	})
}

// blocker is a handler that blocks.
type blocker struct{ called, thaw chan struct{} }

func (b blocker) Replied(*Call, Reply) { close(b.called); <-b.thaw }
func (blocker) Overdue(*Call)          {}
func (blocker) Stranded(*Call)         {}
