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
	wait := protocol.Wait(protocol.Stand(protocol.NoPlace, false, 0), protocol.Offer(30000, 1, true), "publish")
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
		if err := x.Stop(ctx); err != nil {
			t.Error(err)
		}
	})
	return x
}

// granted fails unless the reply is a grant without fencing.
func granted(t *testing.T, what string, r command.Reply) {
	t.Helper()
	if r.Outcome != command.Answered || r.Value != int64(0) {
		t.Errorf("%s: %v, %v, %v", what, r.Outcome, r.Value, r.Err)
	}
}

// Many names are locked and unlocked as a few commands, and nothing is left.
func TestMerged_AcquiresAndReleases(t *testing.T) {
	srv := redistest.Start(t)
	x := executor(t, srv.Client(t))
	names := names(500, "n%d")
	for range 3 {
		few(t, x, len(names), func() {
			for i, r := range all(t, x, acquire, names...) {
				granted(t, names[i], r)
			}
		})
		srv.RequireTTLs(t)
		for i, name := range names {
			if got := srv.Admin().HGetAll(t.Context(), name).Val(); len(got) != 1 || got[owner(i)] != "1" {
				t.Fatalf("%s is %v", name, got)
			}
		}
		few(t, x, len(names), func() {
			for i, r := range all(t, x, release, names...) {
				granted(t, names[i], r)
			}
		})
		srv.RequireNoKeys(t)
	}
}

// Names that are held by another owner, of another kind, or broken change nothing for the others.
func TestMerged_PoisonedNames(t *testing.T) {
	srv := redistest.Start(t)
	x := executor(t, srv.Client(t))
	names, admin := names(64, "n%d"), srv.Admin()
	admin.HSet(t.Context(), names[3], "hf-x:9", "1")
	admin.PExpire(t.Context(), names[3], time.Minute)
	admin.Set(t.Context(), names[17], "text", 0)
	admin.LPush(t.Context(), "holdfast_tombstones:{"+names[21]+"}", "x")
	admin.ZAdd(t.Context(), "holdfast_tombstones:{"+names[40]+"}", redis.Z{Score: 1e15, Member: owner(40)})
	want := map[int]lock.Says{3: lock.Held, 17: lock.OtherKind, 21: lock.OtherKind, 40: lock.Buried}
	few(t, x, len(names), func() {
		for i, r := range all(t, x, acquire, names...) {
			if says, odd := want[i]; odd {
				var v lock.Reply
				if !protocol.ParseVerdict(r.Value, &v) || v.Says != says {
					t.Errorf("%s: %v, %v, %v", names[i], r.Outcome, r.Value, r.Err)
				}
				continue
			}
			granted(t, names[i], r)
		}
	})
	few(t, x, len(names), func() {
		for i, r := range all(t, x, release, names...) {
			switch i {
			case 3:
				if r.Value != int64(protocol.ReleaseStolen) {
					t.Errorf("%s: %v, %v, %v", names[i], r.Outcome, r.Value, r.Err)
				}
			case 17, 21, 40:
			default:
				granted(t, names[i], r)
			}
		}
	})
}

// A lost reply leaves each of its calls unclear. Those that ask again find what the first copy did.
func TestMerged_LostReply(t *testing.T) {
	srv := redistest.Start(t)
	p := srv.Proxy(t)
	x := executor(t, p.Client(t))
	names := names(64, "n%d")
	all(t, x, acquire, "warm")
	for _, lose := range []func(redistest.Match, int){p.LoseReply, p.LoseRequest, p.BreakReply} {
		lose(redistest.Containing("n20"), 1)
		few(t, x, len(names), func() {
			unclear := 0
			for i, r := range all(t, x, acquire, names...) {
				if r.Outcome == command.Answered {
					granted(t, names[i], r)
					continue
				}
				unclear++
				if r.Outcome != command.Unknown || r.Err == nil {
					t.Errorf("%s: %v, %v, %v", names[i], r.Outcome, r.Value, r.Err)
				}
			}
			if unclear < 2 {
				t.Errorf("%d calls are unclear", unclear)
			}
		})
		few(t, x, len(names), func() {
			for i, r := range all(t, x, acquire, names...) {
				granted(t, names[i], r)
			}
		})
		for i, name := range names {
			if got := srv.Admin().HGetAll(t.Context(), name).Val(); len(got) != 1 || got[owner(i)] != "1" {
				t.Errorf("%s is %v", name, got)
			}
		}
		all(t, x, release, names...)
	}
}

// Something between the client and Redis adds a reply, or loses one: no call takes the reply to another.
func TestMerged_ShiftedReplies(t *testing.T) {
	srv := redistest.Start(t)
	p := srv.Proxy(t)
	x := executor(t, p.Client(t))
	text := "-- holdfast read\nreturn tonumber(redis.call('get', KEYS[1]))\n"
	s := command.NewScript("read", text, protocol.Many("read", text), func(v any) bool { _, ok := v.(int64); return ok })
	read := func(k *wire.Keys, _ int) *command.Call { return &command.Call{Script: s, Args: s.Args(1, k.Lock)} }
	names := names(100, "n%d")
	for i, name := range names {
		srv.Admin().Set(t.Context(), name, i, 0)
	}
	all(t, x, read, names...)
	for _, added := range []string{"+OK\r\n*1\r\n:7\r\n", ":7\r\n", "*0\r\n", "*2\r\n:7\r\n*0\r\n", "$-1\r\n"} {
		p.Answer(redistest.Containing("n40"), 1, added)
		for turn, fine := 0, false; !fine; turn++ { // what is left over can come with the next batch
			fine = turn > 0
			for i, r := range all(t, x, read, names...) {
				if r.Outcome == command.Answered && r.Value != int64(i) {
					t.Errorf("%q: %s is %v", added, names[i], r.Value)
				}
				fine = fine && r.Outcome == command.Answered
			}
			if turn == 10 {
				t.Fatalf("%q: not fine after %d turns", added, turn)
			}
		}
	}
}
