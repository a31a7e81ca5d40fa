package command

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/internal/lock"
	"github.com/holdfast-go/holdfast/internal/redistest"
	"github.com/redis/go-redis/v9"
)

// roomCall is a call of s whose arguments are in a room.
func roomCall(s *Script, key string, h Handler) *Call {
	c := &Call{Script: s, Handler: h, Patience: time.Minute}
	c.Args = append(CountKeys(append(s.Begin(&c.Room), key)), "own "+key, "same")
	return c
}

// again is the handler of a call that is used again after its end.
type again struct {
	*outcome
	call *Call
}

func (a *again) Recycle() { a.call.Room = Room{"used again"} }

// Rooms are used again, and what go-redis has been given does not change by that: a hook of the client can have kept it.
func TestRooms_AreUsedAgain(t *testing.T) {
	bubble(t, func(t *testing.T, x *Executor, srv *fakeServer) {
		s := manyScript(nil)
		type seen struct{ args, copy []any }
		var kept []seen // guarded by oneByOne
		srv.answers(t, s, func(call []any) any { return call[0] })
		answer := srv.answer
		srv.answer = oneByOne(func(ctx context.Context, cmd *redis.Cmd) {
			kept = append(kept, seen{cmd.Args(), slices.Clone(cmd.Args())})
			answer(ctx, cmd)
		})
		submit := func(n int) {
			var calls []*Call
			var handlers []*again
			for i := range n {
				h := &again{outcome: newOutcome()}
				h.call = roomCall(s, fmt.Sprint("k", i), h)
				calls, handlers = append(calls, h.call), append(handlers, h)
			}
			x.Submit(time.Now(), calls...)
			for i, h := range handlers {
				if r := <-h.replies; r.Outcome != lock.Answered || r.Value != fmt.Sprint("k", i) {
					t.Errorf("call %d: %v, %v, %v", i, r.Outcome, r.Value, r.Err)
				}
			}
			synctest.Wait()
			for i, c := range calls {
				if c.Room != (Room{"used again"}) {
					t.Errorf("the room of call %d of %d has %v", i, n, c.Room)
				}
			}
		}
		for range 4 {
			submit(1)
			submit(100)
		}
		alone := slices.ContainsFunc(kept, func(k seen) bool { return len(s.calls(t, k.args)) == 1 })
		merged := slices.ContainsFunc(kept, func(k seen) bool { return len(s.calls(t, k.args)) > 1 })
		if !alone || !merged {
			t.Errorf("calls went alone: %v, merged: %v", alone, merged)
		}
		for _, k := range kept {
			if !slices.Equal(k.args, k.copy) {
				t.Errorf("go-redis had %v, and has %v", k.copy, k.args)
			}
		}
	})
}

// recycles is the handler of a call that is to be used again.
type recycles struct {
	*outcome
	recycled chan struct{}
}

func (r recycles) Recycle() { r.recycled <- struct{}{} }

// A handler may use a call again after its reply, but not if another goroutine may still tell it that the reply is late.
func TestRecycle_FollowsTheReply(t *testing.T) {
	frozen(t, func(t *testing.T, x *Executor, thaw chan struct{}) {
		begin := func(patience time.Duration) recycles {
			r := recycles{newOutcome(), make(chan struct{}, 2)}
			x.Submit(time.Now(), &Call{Script: testScript, Args: testScript.Args(1, "k"), Handler: r, Patience: patience})
			return r
		}
		late, soon := begin(2*tick), begin(time.Minute)
		<-late.overdue
		synctest.Wait()
		redistest.Want(t, len(late.recycled)+len(soon.recycled), 0, "recycled before the reply")
		close(thaw)
		<-late.replies
		<-soon.replies
		redistest.Check(t, x.Stop(t.Context()))
		if len(late.recycled) != 0 || len(soon.recycled) != 1 {
			t.Errorf("recycled: %d times when it was overdue, and else %d times", len(late.recycled), len(soon.recycled))
		}
	})
}

// locates is a cluster's client that tells which keys it is asked for.
type locates struct {
	*fakeCluster
	asked chan string
}

func (l locates) MasterForKey(_ context.Context, key string) (*redis.Client, error) {
	l.asked <- key
	return nil, errors.New("no master has the slot")
}

// stays is the handler of a call whose lane it keeps in it until leave is closed.
type stays struct {
	*outcome
	inside, leave chan struct{}
}

func (s stays) Replied(c *Call, r Reply) {
	close(s.inside)
	<-s.leave
	s.outcome.Replied(c, r)
}

// A doubt asks for the master of what is under way while one lane has its merged calls end: it may ask for a call that has ended.
func TestDoubt_WhileMergedCallsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, thaw := manyScript(nil), make(chan struct{})
		srv := &fakeServer{}
		srv.answers(t, s, func(call []any) any {
			if call[0] == "silent" {
				<-thaw
			}
			return call[0]
		})
		client := srv.client()
		defer client.Close()
		cluster := locates{&fakeCluster{Client: client}, make(chan string, 8)}
		x := New(cluster) // it knows no slots: one shard has all calls
		silent := newOutcome()
		x.Submit(time.Now(), roomCall(s, "silent", silent))
		synctest.Wait()

		first, last := newOutcome(), stays{newOutcome(), make(chan struct{}), make(chan struct{})}
		var calls []*Call
		for i := range crowd - 1 {
			calls = append(calls, roomCall(s, fmt.Sprint("{tag}", i), first))
		}
		x.Submit(time.Now(), append(calls, roomCall(s, "{tag}last", last))...)
		<-last.inside
		if key := <-cluster.asked; key != "silent" && key != "{tag}0" {
			t.Errorf("asked for the master of %q", key)
		}
		close(last.leave)
		close(thaw)
		for _, o := range []*outcome{silent, last.outcome} {
			if r := <-o.replies; r.Outcome != lock.Answered {
				t.Errorf("%v, %v", r.Outcome, r.Err)
			}
		}
		if err := x.Stop(context.Background()); err != nil {
			t.Errorf("Stop: %v", err)
		}
	})
}
