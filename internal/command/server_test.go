package command

import (
	"context"
	"fmt"
	"net"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/internal/lock"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

var countScript = NewScript("count", "return redis.call('incr', KEYS[1])", "", nil)

// call submits a call of s for each key at once.
func call(t *testing.T, x *Executor, s *Script, keys ...string) []*outcome {
	t.Helper()
	var args [][]any
	for _, k := range keys {
		args = append(args, s.Args(1, k))
	}
	return submitEach(t, x, s, 10*time.Second, args...)
}

func stop(t *testing.T, x *Executor) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	redistest.Check(t, x.Stop(ctx))
}

// go-redis sends a command again when its reply is lost, by default and silently. A
// script of Holdfast must run once: the count tells. What was answered before in the pipeline is.
func TestServer_LostReplyIsNotSentAgain(t *testing.T) {
	for _, n := range []int{1, 64} { // alone, and in a pipeline
		srv := redistest.Start(t)
		p := srv.Proxy(t)
		x := New(p.Client(t))
		defer stop(t, x)
		<-call(t, x, countScript, "warm")[0].replies
		p.LoseReply(redistest.Containing("counted"), 1)
		var keys []string
		for i := range n {
			keys = append(keys, fmt.Sprintf("k%d", i))
		}
		lost := n / 3 // in the middle of a batch
		keys[lost] = "counted"
		for i, o := range call(t, x, countScript, keys...) {
			switch r := <-o.replies; {
			case i < lost && r.Outcome != lock.Answered:
				t.Errorf("of %d, number %d before the lost reply is %v, %v", n, i, r.Outcome, r.Err)
			case i == lost && (r.Outcome != lock.Unknown || r.Err == nil):
				t.Errorf("of %d: the lost reply is %v, %v", n, r.Outcome, r.Err)
			}
		}
		if commands, batches := x.Commands(); n > 1 && batches > commands/4 {
			t.Errorf("%d commands in %d batches", commands, batches)
		}
		if got := srv.Admin().Get(context.Background(), "counted").Val(); got != "1" {
			t.Errorf("of %d: the script ran %s times", n, got)
		}
	}
}

// A reply too many arrives when go-redis has handed the connection on to the next batch, where its form is right. The
// reply before it could not be right, so each call of the next batch is followed by a check.
func TestServer_ShiftedRepliesOfTheNextBatch(t *testing.T) {
	numbers := NewScript("numbers", "return redis.call('incr', KEYS[1])", "", func(v any) bool { _, ok := v.(int64); return ok })
	srv := redistest.Start(t)
	p := srv.Proxy(t)
	for _, n := range []int{1, 2, 64} {
		x := New(p.ClientWith(t, func(o *redis.Options) { o.PoolSize, o.PipelinePoolSize = 1, 1 }))
		<-call(t, x, numbers, "warm")[0].replies
		p.AnswerTwice(redistest.Containing("odd"), 1, "+OK\r\n", ":7\r\n")
		if r := <-call(t, x, numbers, "odd")[0].replies; r.Outcome != lock.Unknown {
			t.Errorf("a strange reply: %v, %v, %v", r.Outcome, r.Value, r.Err)
		}
		keys := make([]string, n)
		for i := range n {
			keys[i] = fmt.Sprint("k", n, ".", i)
			srv.Admin().Set(context.Background(), keys[i], 100*(i+1), 0)
		}
		for turn, strange := 0, 0; turn == 0 || strange > 0; turn++ { // what is left over can be late once more
			strange = 0
			for i, o := range call(t, x, numbers, keys...) {
				r := <-o.replies
				if r.Outcome == lock.Unknown {
					strange++
				} else if v, ok := r.Value.(int64); !ok || v/100 != int64(i+1) {
					t.Errorf("of %d, turn %d: call %d is %v, %v, %v", n, turn, i, r.Outcome, r.Value, r.Err)
				}
			}
			if turn == 0 && strange == 0 || turn == 10 {
				t.Fatalf("of %d, turn %d: %d calls met the reply too many", n, turn, strange)
			}
		}
		stop(t, x)
	}
}

// A call that a cluster's node redirects, and whose reply is lost at the next one, may have run: the
// redirection does not say otherwise.
func TestServer_LostReplyBehindARedirection(t *testing.T) {
	c := redistest.StartCluster(t)
	const tag = "{moving}"
	from, to := c.Owner(tag), c.OtherMaster(tag)
	proxy := to.Proxy(t)
	client := c.ClientWith(t, func(o *redis.ClusterOptions) {
		o.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
			if addr == to.Addr() {
				addr = proxy.Addr()
			}
			return new(net.Dialer).DialContext(ctx, network, addr)
		}
	})
	x := New(client)
	defer stop(t, x)
	<-call(t, x, countScript, tag+"warm")[0].replies
	c.Migrate(tag, to)
	var keys []string
	for i := range 16 {
		keys = append(keys, fmt.Sprint(tag, i))
	}
	proxy.LoseReply(redistest.Containing(tag), 1)
	ran := 0
	for i, o := range call(t, x, countScript, keys...) {
		r := <-o.replies
		n := to.Admin().Exists(context.Background(), keys[i]).Val()
		ran += int(n)
		if n == 1 && r.Outcome != lock.Answered && r.Outcome != lock.Unknown {
			t.Errorf("call %d has run, and is %v: %v", i, r.Outcome, r.Err)
		}
	}
	if ran == 0 || proxy.Count(redistest.Containing(tag)) == 0 || from == to {
		t.Errorf("%d calls have run at %s", ran, to.Addr())
	}
}

// A right that is missing is for good if the client was never let in.
func TestServer_DeniedAndBarred(t *testing.T) {
	srv := redistest.Start(t)
	x, fresh := New(srv.Client(t)), New(srv.Client(t))
	defer stop(t, x)
	defer stop(t, fresh)
	if r := <-call(t, x, countScript, "k")[0].replies; r.Outcome != lock.Answered {
		t.Errorf("healthy: %v, %v", r.Outcome, r.Err)
	}
	srv.Admin().Do(t.Context(), "ACL", "SETUSER", "default", "resetkeys")
	for executor, want := range map[*Executor]lock.Outcome{x: lock.Barred, fresh: lock.Denied} {
		if r := <-call(t, executor, countScript, "k")[0].replies; r.Outcome != want {
			t.Errorf("a key denied: %v, %v, want %v", r.Outcome, r.Err, want)
		}
	}
}

// plain is a client of the user's own type, which cannot be compared.
type plain struct {
	Client
	_ []string
}

func TestServer_ClientsAreNotCompared(t *testing.T) {
	srv := redistest.Start(t)
	x := New(plain{Client: srv.Client(t)})
	defer stop(t, x)
	const n = 4 * crowd // so many that batches have several of them
	acks := &Acks{Replicas: 1, Timeout: time.Millisecond}
	o := submitMany(t, x, n, Call{Script: countScript, Patience: 10 * time.Second, Acks: acks}, always("k"))
	for range n {
		if r := <-o.replies; r.Outcome != lock.Answered || r.Unacked == nil || *r.Unacked != (Unacked{Want: 1}) {
			t.Errorf("%v, %v, %v", r.Outcome, r.Err, r.Unacked)
		}
	}
}
