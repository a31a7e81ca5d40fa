package command

import (
	"context"
	"fmt"
	"slices"
	"strings"
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

// submitEach submits calls of s at once, each with arguments and a handler of its own.
func submitEach(t *testing.T, x *Executor, s *Script, patience time.Duration, args ...[]any) []*outcome {
	t.Helper()
	calls, outcomes := make([]*Call, len(args)), make([]*outcome, len(args))
	for i := range args {
		outcomes[i] = newOutcome()
		calls[i] = &Call{Script: s, Args: args[i], Handler: outcomes[i], Patience: patience}
	}
	if !x.Submit(time.Now(), calls...) {
		t.Fatal("Submit refused")
	}
	return outcomes
}

func submit(t *testing.T, x *Executor, key string, patience time.Duration) *outcome {
	t.Helper()
	return submitEach(t, x, testScript, patience, testScript.Args(1, key))[0]
}

// submitMany submits n calls at once, like call but for their keys, and returns what their handler is told.
func submitMany(t *testing.T, x *Executor, n int, call Call, key func(i int) string) *outcome {
	t.Helper()
	o := &outcome{replies: make(chan Reply, n), overdue: make(chan time.Time, n), stranded: make(chan time.Time, n)}
	calls := make([]*Call, n)
	for i := range calls {
		c := call
		c.Args, c.Handler = c.Script.Args(1, key(i)), o
		calls[i] = &c
	}
	if !x.Submit(time.Now(), calls...) {
		t.Fatal("Submit refused")
	}
	return o
}

// always is the same key for each call.
func always(key string) func(int) string { return func(int) string { return key } }

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

// oneByOne has a server answer as Redis does, whatever the lanes that ask: one command at a time.
func oneByOne(answer func(context.Context, *redis.Cmd)) func(context.Context, *redis.Cmd) {
	var mu sync.Mutex
	return func(ctx context.Context, cmd *redis.Cmd) {
		mu.Lock()
		defer mu.Unlock()
		answer(ctx, cmd)
	}
}

// manyScript can be merged; fits says what its replies are.
func manyScript(fits func(any) bool) *Script { return NewScript("many", "one", "form", fits) }

// calls takes a command of s apart; each call is its keys and then its arguments.
func (s *Script) calls(t *testing.T, args []any) (calls [][]any) {
	t.Helper()
	n := args[argNumKeys].(int)
	keys, argv := args[argFirstKey:argFirstKey+n], args[argFirstKey+n:]
	if args[argScript] == s.sha || args[argScript] == s.text {
		return [][]any{slices.Concat(keys, argv)}
	}
	if args[argScript] != s.many.sha && args[argScript] != s.many.text {
		t.Fatalf("another script: %v", args)
	}
	width, shape := argv[0].(int), argv[1].(string)
	shared := strings.Count(shape, "=")
	common, own := argv[2:2+shared], argv[2+shared:]
	for len(keys) > 0 {
		call, next := slices.Clone(keys[:width]), common
		keys = keys[width:]
		for _, sign := range shape {
			from := &own
			if sign == '=' {
				from = &next
			}
			call = append(call, (*from)[0])
			*from = (*from)[1:]
		}
		calls = append(calls, call)
	}
	if len(own) > 0 {
		t.Fatalf("arguments too many: %v", own)
	}
	return calls
}

// answers has the fake server answer each call of s by itself: with its first key, unless reply says otherwise.
func (f *fakeServer) answers(t *testing.T, s *Script, reply func(call []any) any) {
	f.answer = func(_ context.Context, cmd *redis.Cmd) {
		calls := s.calls(t, cmd.Args())
		all, failures := []any{}, []any{}
		for i, c := range calls {
			v := reply(c)
			if err, failed := v.(error); failed && len(calls) > 1 {
				failures, v = append(failures, int64(i+1), err.Error()), nil
			}
			all = append(all, v)
		}
		switch err, failed := all[0].(error); {
		case len(all) > 1:
			cmd.SetVal(append(all, failures))
		case failed:
			cmd.SetErr(err)
		default:
			cmd.SetVal(all[0])
		}
	}
}

// submitAll submits calls of s, each with a key and the arguments of its own.
func submitAll(t *testing.T, x *Executor, s *Script, n int, args ...any) []*outcome {
	t.Helper()
	var all [][]any
	for i := range n {
		all = append(all, s.Args(1, append([]any{fmt.Sprint("k", i), fmt.Sprint("own", i)}, args...)...))
	}
	return submitEach(t, x, s, time.Minute, all...)
}
