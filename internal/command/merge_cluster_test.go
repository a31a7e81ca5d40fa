package command_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/internal/command"
	"github.com/holdfast-go/holdfast/internal/lock"
	"github.com/holdfast-go/holdfast/internal/protocol"
	"github.com/holdfast-go/holdfast/internal/redistest"
	"github.com/holdfast-go/holdfast/internal/wire"
)

// A cluster's calls are merged where their names have one {tag}, and go on when its slot moves.
func TestMerged_Cluster(t *testing.T) {
	c := redistest.StartCluster(t)
	x := executor(t, c.Client(t))
	all(t, x, acquire, "warm") // the slots are known from here on
	tagged := names(64, "{tag}:n%d")
	mixed := append(names(64, "n%d"), tagged...)
	both := func() {
		t.Helper()
		for i, r := range all(t, x, acquire, mixed...) {
			granted(t, mixed[i], r)
		}
		for i, r := range all(t, x, release, mixed...) {
			granted(t, mixed[i], r)
		}
	}
	few(t, x, len(tagged), func() {
		for i, r := range all(t, x, acquire, tagged...) {
			granted(t, tagged[i], r)
		}
	})
	all(t, x, release, tagged...)
	both()
	c.Migrate("{tag}", c.OtherMaster("{tag}"))
	redistest.Eventually(t, redistest.Patience, "the slots are known again", func() bool {
		for _, r := range all(t, x, acquire, tagged...) {
			if r.Outcome != lock.Answered {
				return false
			}
		}
		return true
	})
	all(t, x, release, tagged...)
	both()
}

// spans notes for each pipeline whose values its context has.
type spans struct {
	redis.Hook
	alone, together chan any
}

type spanKey struct{}

func (*spans) DialHook(next redis.DialHook) redis.DialHook          { return next }
func (*spans) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }

func (s *spans) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		to := s.alone
		if len(cmds[0].Args()) > 20 {
			to = s.together
		}
		select {
		case to <- ctx.Value(spanKey{}):
		default:
		}
		return next(ctx, cmds)
	}
}

// A call that goes alone has the trace of its caller. A command of many callers has none.
func TestMerged_Traces(t *testing.T) {
	srv := redistest.Start(t)
	s := &spans{alone: make(chan any, 100), together: make(chan any, 100)}
	client := srv.Client(t)
	client.AddHook(s)
	x := executor(t, client)
	traced := func(k *wire.Keys, i int) *command.Call {
		c := acquire(k, i)
		c.Trace = context.WithValue(context.Background(), spanKey{}, k.Lock)
		return c
	}
	all(t, x, traced, "one")
	redistest.Want(t, <-s.alone, "one", "alone: %v")
	all(t, x, traced, names(64, "n%d")...)
	if got := <-s.together; got != nil {
		t.Errorf("together: %v", got)
	}
}

// replied collects the ends of calls.
type replied struct {
	replies []command.Reply
	names   map[*command.Call]int
	ended   chan int
}

func (r *replied) Replied(c *command.Call, reply command.Reply) {
	i := r.names[c]
	r.replies[i] = reply
	r.ended <- i
}
func (*replied) Overdue(*command.Call)  {}
func (*replied) Stranded(*command.Call) {}

const manager = "hf-0f6b1d9e-9e6f-4f0e-8f1d-2b1e9c1c2d3e"

// owner is an owner id for the name at i.
func owner(i int) string { return fmt.Sprint(manager, ":", i+1) }

func acquire(keys *wire.Keys, i int) *command.Call {
	s := protocol.LockAcquire
	wait := protocol.Wait(protocol.Stand(lock.NoPlace, false, 0), protocol.Offer(30000, 1, true), "publish")
	return &command.Call{Script: s, Args: s.Args(4, keys.Lock, keys.Queue, keys.Deadlines, keys.Tombstones, owner(i), "60000", wait)}
}

func release(keys *wire.Keys, i int) *command.Call {
	s := protocol.LockRelease
	return &command.Call{Script: s, Args: s.Args(3, keys.Lock, keys.Queue, keys.Deadlines, owner(i), "publish", protocol.Offer(30000, 1, true))}
}

// all submits a call for each name at once, and returns the replies.
func all(t *testing.T, x *command.Executor, call func(*wire.Keys, int) *command.Call, names ...string) []command.Reply {
	t.Helper()
	r := &replied{replies: make([]command.Reply, len(names)), names: map[*command.Call]int{}, ended: make(chan int, 2*len(names))}
	var calls []*command.Call
	for i, name := range names {
		c := call(wire.NewKeys(name), i)
		c.Handler, c.Patience = r, redistest.Patience
		r.names[c] = i
		calls = append(calls, c)
	}
	if !x.Submit(time.Now(), calls...) {
		t.Fatal("Submit refused")
	}
	seen := map[int]bool{}
	for range names {
		i := <-r.ended
		if seen[i] {
			t.Fatalf("%s has two ends", names[i])
		}
		seen[i] = true
	}
	return r.replies
}

// few fails unless the calls of f were sent as at most a quarter as many commands.
func few(t *testing.T, x *command.Executor, calls int, f func()) {
	t.Helper()
	before, _ := x.Commands()
	f()
	if after, _ := x.Commands(); int(after-before) > calls/4 {
		t.Errorf("%d calls were %d commands", calls, after-before)
	}
}

func names(n int, form string) (all []string) {
	for i := range n {
		all = append(all, fmt.Sprintf(form, i))
	}
	return all
}

func executor(t *testing.T, client command.Client) *command.Executor {
	x := command.New(client)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), redistest.Patience)
		defer cancel()
		redistest.Check(t, x.Stop(ctx))
	})
	return x
}

// granted fails unless the reply is a grant without fencing.
func granted(t *testing.T, what string, r command.Reply) {
	t.Helper()
	if r.Outcome != lock.Answered || r.Value != int64(0) {
		t.Errorf("%s: %v, %v, %v", what, r.Outcome, r.Value, r.Err)
	}
}
