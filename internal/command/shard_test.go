package command

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/internal/lock"
	"github.com/holdfast-go/holdfast/internal/redistest"
	"github.com/redis/go-redis/v9"
)

// fakeCluster is a cluster client whose keys belong to the master that they begin with.
type fakeCluster struct {
	*redis.Client
	masters map[string]*redis.Client
	reloads atomic.Int32
}

func (f *fakeCluster) MasterForKey(_ context.Context, key string) (*redis.Client, error) {
	name, _, _ := strings.Cut(key, ":")
	m := f.masters[name]
	if m == nil {
		return nil, fmt.Errorf("no node for %q", key)
	}
	return m, nil
}

func (f *fakeCluster) ReloadState(context.Context) { f.reloads.Add(1) }

// clusterBubble is bubble with a cluster of the named masters, whose slots are known.
func clusterBubble(t *testing.T, masters []string, f func(t *testing.T, x *Executor, c *fakeCluster, srv *fakeServer)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		srv := &fakeServer{answer: echo}
		c := &fakeCluster{Client: srv.client(), masters: make(map[string]*redis.Client)}
		defer c.Close()
		for _, name := range masters {
			m := srv.client()
			defer m.Close()
			c.masters[name] = m
		}
		x := New(c)
		<-submit(t, x, masters[0], time.Second).replies
		f(t, x, c, srv)
		if err := x.Stop(context.Background()); err != nil {
			t.Errorf("Stop: %v", err)
		}
	})
}

// A master that does not answer holds up no calls for other masters, however many there are for
// it.
func TestShard_DeadMasterDelaysNoOther(t *testing.T) {
	clusterBubble(t, []string{"dead", "alive"}, func(t *testing.T, x *Executor, c *fakeCluster, srv *fakeServer) {
		thaw := make(chan struct{})
		srv.answer = func(ctx context.Context, cmd *redis.Cmd) {
			if strings.HasPrefix(cmd.Args()[argFirstKey].(string), "dead") {
				<-thaw
			}
			echo(ctx, cmd)
		}
		var dead []*outcome
		for i := range 200 {
			dead = append(dead, submit(t, x, fmt.Sprint("dead:", i), time.Hour))
			if i%10 == 0 {
				time.Sleep(stuckAfter) // until no lane is left
			}
			start := time.Now()
			o := submit(t, x, fmt.Sprint("alive:", i), time.Hour)
			select {
			case <-o.replies:
			case <-time.After(time.Minute):
			}
			if d := time.Since(start); d != 0 {
				t.Errorf("call %d for the other master took %v", i, d)
				break
			}
		}
		if c.reloads.Load() == 0 {
			t.Error("nobody asked whether the dead master has a successor")
		}
		close(thaw)
		for _, o := range dead {
			if r := <-o.replies; r.Outcome != lock.Answered {
				t.Errorf("a late reply is %v", r.Outcome)
			}
		}
	})
}

// Calls that are submitted together share pipelines, one per master.
func TestShard_BatchesAreOneMasters(t *testing.T) {
	clusterBubble(t, []string{"a", "b", "c"}, func(t *testing.T, x *Executor, c *fakeCluster, srv *fakeServer) {
		const n = 300
		before := len(srv.seen())
		o := submitMany(t, x, n, Call{Script: testScript, Patience: time.Second}, func(i int) string {
			return fmt.Sprint([]string{"a", "b", "c"}[i%3], ":", i)
		})
		for range n {
			<-o.replies
		}
		batches := srv.seen()[before:]
		for _, b := range batches {
			if slices.ContainsFunc(b, func(key string) bool { return key[0] != b[0][0] }) {
				t.Errorf("a batch for several masters: %q", b)
			}
		}
		if len(batches) > n/5 {
			t.Errorf("%d calls in %d batches", n, len(batches))
		}
	})
}

// A new master is sent scripts in full, others go on with digests.
func TestShard_ScriptsAreKnownPerMaster(t *testing.T) {
	clusterBubble(t, []string{"a", "b"}, func(t *testing.T, x *Executor, c *fakeCluster, srv *fakeServer) {
		var sent []string
		srv.answer = func(ctx context.Context, cmd *redis.Cmd) {
			sent = append(sent, cmd.Args()[argCommand].(string))
			echo(ctx, cmd)
		}
		for _, key := range []string{"a:1", "a:2", "b:1", "b:2", "a:3"} {
			<-submit(t, x, key, time.Second).replies
		}
		if want := []string{"eval", "evalsha", "eval", "evalsha", "evalsha"}; !slices.Equal(sent, want) {
			t.Errorf("sent %q, want %q", sent, want)
		}
	})
}

// Masters come and go; what was kept for one that is gone goes as well.
func TestShard_IsRetiredWithItsMaster(t *testing.T) {
	clusterBubble(t, []string{"a", "b"}, func(t *testing.T, x *Executor, c *fakeCluster, srv *fakeServer) {
		for range 50 {
			<-submit(t, x, "a:1", time.Second).replies
			<-submit(t, x, "b:1", time.Second).replies
			time.Sleep(retireAfter / 2)
			next := srv.client()
			defer next.Close()
			c.masters["b"] = next
		}
		synctest.Wait()
		x.mu.Lock()
		defer x.mu.Unlock()
		redistest.WantMost(t, len(x.shards), 5, "%d shards are kept")
		if s := x.shards[c.masters["a"]]; s == nil || s.retired {
			t.Error("a shard in use was retired")
		}
	})
}

// A call may be for a master that had no other call for long: it is overdue in time, whether others come or not.
func TestShard_WithCallsIsKept(t *testing.T) {
	clusterBubble(t, []string{"a", "b", "c"}, func(t *testing.T, x *Executor, c *fakeCluster, srv *fakeServer) {
		thaw := make(chan struct{})
		srv.answer = func(ctx context.Context, cmd *redis.Cmd) {
			if cmd.Args()[argFirstKey] == "b:1" {
				<-thaw
			}
			echo(ctx, cmd)
		}
		const late = 3 * retireAfter
		o := submit(t, x, "b:1", late)
		time.Sleep(2 * retireAfter)
		<-submit(t, x, "c:1", time.Second).replies
		select {
		case <-o.overdue:
		case <-time.After(late):
			t.Error("nobody was told that it is overdue")
		}
		close(thaw)
		<-o.replies
	})
}

// Where no master has the slot, the client says so itself.
func TestShard_WithoutMasterIsStillAsked(t *testing.T) {
	clusterBubble(t, []string{"a"}, func(t *testing.T, x *Executor, c *fakeCluster, srv *fakeServer) {
		if r := <-submit(t, x, "nobody:1", time.Second).replies; r.Outcome != lock.Answered {
			t.Errorf("%v, %v", r.Outcome, r.Err)
		}
	})
}

func TestTrouble_HasTheSlotsLoadedAgain(t *testing.T) {
	clusterBubble(t, []string{"a"}, func(t *testing.T, x *Executor, c *fakeCluster, srv *fakeServer) {
		for _, refusal := range []error{nil, redis.ErrPoolTimeout, context.DeadlineExceeded} {
			srv.answer = func(ctx context.Context, cmd *redis.Cmd) {
				cmd.SetVal("x")
				cmd.SetErr(refusal)
			}
			before := c.reloads.Load()
			<-submit(t, x, "a:1", time.Second).replies
			synctest.Wait()
			if asked := c.reloads.Load() > before; asked != (refusal != nil) {
				t.Errorf("after %v: loaded again = %t", refusal, asked)
			}
		}
	})
}

// Of the lanes whose servers are not known, the one that has waited longest says which server is silent.
func TestShard_TheSilentLaneSaysTheServer(t *testing.T) {
	c := &fakeCluster{masters: map[string]*redis.Client{}}
	x, begun := &Executor{cluster: c, life: t.Context()}, time.Now()
	s := &shard{x: x, busy: map[*lane]struct{}{}}
	if p := x.serverOf(s); p != nil {
		t.Errorf("without lanes it is %v", p)
	}
	for i := range 8 { // in the order of a map
		name := fmt.Sprint("m", i)
		c.masters[name] = redis.NewClient(&redis.Options{})
		defer c.masters[name].Close()
		s.busy[&lane{batch: []*Call{{Args: testScript.Args(1, name+":a")}}, since: begun.Add(time.Duration(i) * time.Second)}] = struct{}{}
	}
	redistest.Want(t, x.serverOf(s), prober(c.masters["m0"]), "the server is not that of the longest wait: %v")
}

// All lanes together send what the server answers while a batch travels, so that it need not wait for the next.
func TestShard_SendsMoreToAServerThatIsFar(t *testing.T) {
	for trip, most := range map[time.Duration]int{time.Millisecond: nearBatch, 2 * time.Millisecond: 250, 20 * time.Millisecond: maxBatch} {
		bubble(t, func(t *testing.T, x *Executor, srv *fakeServer) {
			srv.answer = func(ctx context.Context, cmd *redis.Cmd) {
				if cmd.Args()[argFirstKey] == "first" {
					time.Sleep(trip)
				}
				echo(ctx, cmd)
			}
			<-submit(t, x, "first", time.Second).replies
			o := submitMany(t, x, 4*maxBatch, Call{Script: testScript, Patience: time.Second}, always("k"))
			for range 4 * maxBatch {
				<-o.replies
			}
			longest := 0
			for _, b := range srv.seen() {
				longest = max(longest, len(b))
			}
			if longest != most {
				t.Errorf("with a trip of %v the largest batch has %d calls, want %d", trip, longest, most)
			}
		})
	}
}
