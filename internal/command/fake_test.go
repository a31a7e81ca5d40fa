package command

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"
)

// fakeServer stands behind a go-redis client and answers instead of a connection, so
// that executors can be tested in a synctest bubble.
type fakeServer struct {
	answer func(ctx context.Context, cmd *redis.Cmd) // sets the value or the error

	mu      sync.Mutex // guards the following
	batches [][]string // what arrived: the first key or argument of each command
}

func (f *fakeServer) client() *redis.Client {
	c := redis.NewClient(&redis.Options{Addr: "127.0.0.1:0"})
	c.AddHook(f)
	return c
}

func (f *fakeServer) DialHook(next redis.DialHook) redis.DialHook { return next }

func (f *fakeServer) ProcessHook(redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		return f.serve(ctx, []redis.Cmder{cmd})
	}
}

func (f *fakeServer) ProcessPipelineHook(redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return f.serve
}

func (f *fakeServer) serve(ctx context.Context, cmds []redis.Cmder) error {
	var batch []string
	for _, cmd := range cmds {
		key := ""
		if args := cmd.Args(); len(args) > argFirstKey {
			key = args[argFirstKey].(string)
		}
		batch = append(batch, key)
	}
	f.mu.Lock()
	f.batches = append(f.batches, batch)
	f.mu.Unlock()
	var first error
	for _, cmd := range cmds {
		var c *redis.Cmd
		switch cmd := cmd.(type) {
		case *once:
			c = &cmd.Cmd
		case *check:
			c = &cmd.Cmd
		}
		f.answer(ctx, c)
		if first == nil {
			first = c.Err()
		}
	}
	return first
}

func (f *fakeServer) seen() [][]string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([][]string(nil), f.batches...)
}

// echo answers each command with its first key.
func echo(_ context.Context, cmd *redis.Cmd) { cmd.SetVal(cmd.Args()[argFirstKey]) }

// outcome collects what a handler is told.
type outcome struct {
	replies  chan Reply
	overdue  chan time.Time
	stranded chan time.Time
}

func newOutcome() *outcome {
	return &outcome{replies: make(chan Reply, 8), overdue: make(chan time.Time, 8), stranded: make(chan time.Time, 8)}
}

func (o *outcome) Replied(_ *Call, r Reply) { o.replies <- r }
func (o *outcome) Overdue(*Call)            { o.overdue <- time.Now() }
func (o *outcome) Stranded(*Call)           { o.stranded <- time.Now() }

var testScript = NewScript("test", "return KEYS[1]", "", nil)

func submit(t *testing.T, x *Executor, key string, patience time.Duration) *outcome {
	t.Helper()
	o := newOutcome()
	if !x.Submit(time.Now(), &Call{Script: testScript, Args: testScript.Args(1, key), Handler: o, Patience: patience}) {
		t.Fatal("Submit refused")
	}
	return o
}

// frozen runs f with an executor on a fake server that answers when thaw is closed, in fake time.
// f stops the executor.
func frozen(t *testing.T, f func(t *testing.T, x *Executor, thaw chan struct{})) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		thaw := make(chan struct{})
		srv := &fakeServer{answer: func(ctx context.Context, cmd *redis.Cmd) { <-thaw; echo(ctx, cmd) }}
		client := srv.client()
		defer client.Close()
		f(t, New(client), thaw)
	})
}

// bubble runs f with an executor on a fake server, in fake time, and stops it.
func bubble(t *testing.T, f func(t *testing.T, x *Executor, srv *fakeServer)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		srv := &fakeServer{answer: echo}
		client := srv.client()
		defer client.Close()
		x := New(client)
		f(t, x, srv)
		if err := x.Stop(context.Background()); err != nil {
			t.Errorf("Stop: %v", err)
		}
	})
}
